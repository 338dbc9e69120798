// Refreshes the session of the logged-in user, and repeats the request that needed it. An access token lasts ten minutes. A refresh token works
// once and returns the next one.

const REFRESH = '/api/v1/session/refresh';
/** Requests without a session, for which a refresh is useless. */
const OUTSIDE = [REFRESH, '/api/v1/setup', '/api/v1/login', '/api/v1/invitation'];
/** Another tab's refresh within this time also counts for this tab, because tabs share cookies. */
const FRESH_MS = 5_000;
const REFRESHED_AT = 'unjank-refreshed-at';
const LOCK = 'unjank-refresh';

let underWay: Promise<boolean> | null = null;
let onEnd: () => void = () => {};

export function whenSessionEnds(callback: () => void) {
  onEnd = callback;
}

export async function fetchWithSession(request: Request): Promise<Response> {
  const again = request.clone();
  const response = await fetch(request);
  if (response.status !== 401 || OUTSIDE.includes(new URL(request.url).pathname)) return response;
  // A wrong password on the account page does not end the session. A retry would count as another wrong password.
  if (await refusesPassword(response)) return response;
  if (await refresh()) return fetch(again);
  onEnd();
  return response;
}

/** Whether a 401 is about the password in the request, not about the session. Does not consume the body. */
export async function refusesPassword(response: Response): Promise<boolean> {
  const problem: unknown = await response
    .clone()
    .json()
    .catch(() => null);
  return (problem as { code?: unknown } | null)?.code === 'login_refused';
}

/** Allows one refresh at a time, across all tabs. Requests that failed together share one refresh. */
function refresh(): Promise<boolean> {
  underWay ??= refreshOnceForAllTabs().finally(() => (underWay = null));
  return underWay;
}

async function refreshOnceForAllTabs(): Promise<boolean> {
  return navigator.locks.request(LOCK, async () => {
    const last = Number(localStorage.getItem(REFRESHED_AT) ?? 0);
    if (Math.abs(Date.now() - last) < FRESH_MS) return true;
    const response = await fetch(REFRESH, { method: 'POST' });
    // An unread body keeps the connection busy.
    await response.text().catch(() => '');
    if (response.ok) localStorage.setItem(REFRESHED_AT, String(Date.now()));
    // A failing server does not end the session.
    return response.ok || response.status >= 500;
  });
}

/** Forgets the last refresh after a login or logout, so that the next refresh contacts the server. */
export function forgetRefresh() {
  localStorage.removeItem(REFRESHED_AT);
}
