// `fetch` that stays logged in: an access token lives for ten minutes, a refresh token works once and brings the next.

const REFRESH = '/api/v1/session/refresh';
/** A refresh of another tab that is this fresh is ours too: cookies are shared. */
const FRESH_MS = 5_000;
const REFRESHED_AT = 'unjank-refreshed-at';
const LOCK = 'unjank-refresh';

let underWay: Promise<boolean> | null = null;
let onEnd: () => void = () => {};

/** Who is told that the session is over. */
export function whenSessionEnds(callback: () => void) {
  onEnd = callback;
}

export async function fetchWithSession(request: Request): Promise<Response> {
  const again = request.clone();
  const response = await fetch(request);
  const path = new URL(request.url).pathname;
  if (response.status !== 401 || path === REFRESH || path.endsWith('/login') || path.endsWith('/invitation')) {
    return response;
  }
  if (await refresh()) return fetch(again);
  onEnd();
  return response;
}

/** One refresh at a time, in this tab and in all: questions that failed together wait for the same one. */
function refresh(): Promise<boolean> {
  underWay ??= oneOfAllTabs().finally(() => (underWay = null));
  return underWay;
}

async function oneOfAllTabs(): Promise<boolean> {
  return navigator.locks.request(LOCK, async () => {
    const last = Number(localStorage.getItem(REFRESHED_AT) ?? 0);
    if (Math.abs(Date.now() - last) < FRESH_MS) return true;
    const response = await fetch(REFRESH, { method: 'POST' });
    if (response.ok) localStorage.setItem(REFRESHED_AT, String(Date.now()));
    // A server that is away ends no session.
    return response.ok || response.status >= 500;
  });
}

/** After a logout the next refresh is asked anew. */
export function forgetRefresh() {
  localStorage.removeItem(REFRESHED_AT);
}
