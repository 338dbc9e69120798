// Errors of the server (`application/problem+json`), as sentences that say what to do. Pure.

export interface Fault {
  path: string;
  code: string;
  message: string;
}

export interface RuleFault {
  rule?: number | null;
  line?: number | null;
  message: string;
}

/** An answer that was no success, or none at all. */
export class Problem extends Error {
  constructor(
    /** 0: there was no answer. */
    readonly status: number,
    /** Stable; empty when the answer did not come from unjank. */
    readonly code: string,
    readonly detail: string,
    readonly more: { faults?: unknown[]; current_revision?: number; retry_after_s?: number } = {},
  ) {
    super(explain(status, code, detail, more.retry_after_s));
    this.name = 'Problem';
  }

  /** Trying the same again may help. */
  get isTemporary(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }

  get faults(): Fault[] {
    return (this.more.faults ?? []) as Fault[];
  }

  get ruleFaults(): RuleFault[] {
    return (this.more.faults ?? []) as RuleFault[];
  }

  static of(status: number, body: unknown): Problem {
    const problem = (typeof body === 'object' && body !== null ? body : {}) as Record<string, unknown>;
    const text = (key: string) => (typeof problem[key] === 'string' ? problem[key] : '');
    return new Problem(status, text('code'), text('detail') || text('title'), problem);
  }

  static from(error: unknown): Problem {
    if (error instanceof Problem) return error;
    return new Problem(0, '', error instanceof Error ? error.message : String(error));
  }
}

/** Navigation ended the question: nobody waits for an answer. */
export function isAborted(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}

const ADVICE: Record<string, string> = {
  login_refused: 'The e-mail address or the password is wrong.',
  invitation_unknown: 'This invitation was used already or is over. Ask an admin for a new one.',
  session_ended: 'Your session has ended. Log in again.',
  token_missing: 'Log in to see this.',
  project_unknown:
    'There is no such project, or you have no access to it. Choose another one, or ask an admin for a role.',
  conflict: 'Somebody else saved in the meantime. Load their version, then make your change again.',
  alert_rule_invalid: 'The rule has faults. They are shown where they are.',
  configuration_invalid: 'The configuration has faults. They are shown where they are.',
  cross_site:
    'The server takes this page for another site. Behind a proxy, pass `Host` and `Origin` on to unjank as they are.',
};

function explain(status: number, code: string, detail: string, retryAfter?: number): string {
  if (status === 0) return 'The server does not answer. Check that it runs and that you are online, then try again.';
  const wait = retryAfter ? ` Try again in ${retryAfter} s.` : '';
  if (code === 'role') return `${sentence(detail)} Ask an admin of the project for it.`;
  if (ADVICE[code]) return ADVICE[code];
  if (code === 'too_many_logins') return `Too many wrong passwords.${wait || ' Try again later.'}`;
  if (status === 429 || status === 503)
    return `${sentence(detail || 'The server is busy')}${wait || ' Try again in a moment.'}`;
  if (status === 404 && code === '') return 'This server does not know this question. It may be older than this page.';
  if (status >= 500) return `${sentence(detail || 'The server failed')} Try again; its log says more.`;
  return sentence(detail || `The server refused this (${status})`);
}

function sentence(text: string): string {
  const capital = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(capital) ? capital : `${capital}.`;
}
