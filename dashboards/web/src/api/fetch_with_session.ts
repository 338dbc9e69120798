// `fetch` that stays logged in: an access token lives for ten minutes, a refresh token works once and brings the next.

const REFRESH = '/api/v1/session/refresh';
/** Requests without a session: a refresh does not help them. */
const OUTSIDE = [REFRESH, '/api/v1/login', '/api/v1/invitation'];
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
  if (response.status !== 401 || OUTSIDE.includes(new URL(request.url).pathname)) return response;
  // A wrong password on the account page: the session goes on, and a second try would count as another wrong password.
  if (await refusesPassword(response)) return response;
  if (await refresh()) return fetch(again);
  onEnd();
  return response;
}

/** Whether a 401 is about the password in the request, and not about the session. Leaves the body to be read. */
export async function refusesPassword(response: Response): Promise<boolean> {
  const problem: unknown = await response
    .clone()
    .json()
    .catch(() => null);
  return (problem as { code?: unknown } | null)?.code === 'login_refused';
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
    // A body that nobody reads keeps the connection busy.
    await response.text().catch(() => '');
    if (response.ok) localStorage.setItem(REFRESHED_AT, String(Date.now()));
    // A server that is away ends no session.
    return response.ok || response.status >= 500;
  });
}

/** After a logout the next refresh is asked anew. */
export function forgetRefresh() {
  localStorage.removeItem(REFRESHED_AT);
}
