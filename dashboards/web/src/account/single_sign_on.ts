// Logins with an identity provider: where they start, and what went wrong as sentences that say what to do. Pure.

/** In the address of the page that is opened after a login that failed. */
export const LOGIN_ERROR = 'login_error';

const REASONS: Record<string, string> = {
  not_started:
    'This login was started in another window or browser, at another address, or more than 10 minutes ago. Try again.',
  denied: 'The identity provider refused the login. Try again, or ask its admin.',
  unreachable: 'The identity provider does not answer. Try again in a moment.',
  invalid:
    'The answer of the identity provider is not valid. Try again. If it fails again, the log of the server has the reason.',
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

/** The address that starts a login. After the login, the browser opens the current page again. */
export function startAddress({ pathname, search, hash }: Pick<Location, 'pathname' | 'search' | 'hash'>): string {
  const query = new URLSearchParams(search);
  query.delete(LOGIN_ERROR);
  const rest = query.size > 0 ? `?${query}` : '';
  return `/api/v1/session/oidc?${new URLSearchParams({ to: pathname + rest + hash })}`;
}
