// Logins with an identity provider: their start address, and messages for failed logins. Pure.

/** The URL parameter with the error code, set after a failed login. */
export const LOGIN_ERROR = 'login_error';

const REASONS: Record<string, string> = {
  not_started:
    'This login was started in another window or browser, at another address, or more than 10 minutes ago. Try again.',
  denied: 'The identity provider refused the login. Try again, or ask its admin.',
  unreachable: 'The identity provider is not responding. Try again in a moment.',
  invalid: 'The identity provider sent an invalid response. Try again. If it fails again, see the server log.',
  busy: 'Too many people are logging in. Try again in a few seconds.',
  no_email: 'The identity provider has no e-mail address for you. Ask its admin to add one to your account.',
  unverified_email:
    'The identity provider did not confirm your e-mail address. Ask its admin to verify the address of your account.',
  linked_elsewhere:
    'Another account at the identity provider is linked to your e-mail address. Ask an admin of unjank to unlink it.',
  no_account: 'You have no account here yet. Ask an admin of unjank to invite you.',
  no_role: 'The identity provider gives you no access to unjank. Ask its admin to add you to a group that has access.',
  disabled: 'Your account is disabled. Ask an admin of unjank to enable it.',
  unavailable: 'The server cannot log you in right now. Try again in a moment.',
};

export function loginFault(code: string | null): string {
  if (!code) return '';
  return REASONS[code] ?? 'The login failed. Try again.';
}

/** The URL that starts a login. After the login, the browser returns to the current page. */
export function startAddress({ pathname, search, hash }: Pick<Location, 'pathname' | 'search' | 'hash'>): string {
  const query = new URLSearchParams(search);
  query.delete(LOGIN_ERROR);
  const rest = query.size > 0 ? `?${query}` : '';
  return `/api/v1/session/oidc?${new URLSearchParams({ to: pathname + rest + hash })}`;
}
