// Turns errors of the server (`application/problem+json`) into messages with advice. Pure.

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

/** The code of problems that the web interface detects. The detail of such a problem is a sentence for the user. */
const OF_PAGE = 'page';

/** A failed request. */
export class Problem extends Error {
  constructor(
    /** The HTTP status. 0 if there was no response. */
    readonly status: number,
    /** The code of the API. Empty if the response did not come from unjank. */
    readonly code: string,
    readonly detail: string,
    readonly more: { faults?: unknown[]; current_revision?: number; retry_after_s?: number } = {},
  ) {
    super(explain(status, code, detail, more.retry_after_s));
    this.name = 'Problem';
  }

  /** Whether a retry may help. */
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
    const isOfPage = error instanceof Error && error.name === 'Error';
    return new Problem(0, isOfPage ? OF_PAGE : '', error instanceof Error ? error.message : String(error));
  }
}

/** Whether the request was aborted, for example because the user left the page. */
export function isAborted(error: unknown): boolean {
  return error instanceof DOMException && error.name === 'AbortError';
}

const ADVICE: Record<string, string> = {
  login_refused: 'The e-mail address or the password is wrong.',
  invitation_unknown: 'This link was already used, has expired or was cancelled. Ask an admin for a new link.',
  setup_code_wrong: 'This set-up code is wrong. Use the link that the server printed at its last start.',
  session_ended: 'Your session has ended. Log in again.',
  token_missing: 'Log in to see this.',
  project_unknown:
    'This project does not exist, or you have no access to it. Choose another project, or ask an admin for a role.',
  conflict: 'Another person saved in the meantime. Load their version, then make your change again.',
  alert_rule_invalid: 'The rule has errors, which are shown next to the fields.',
  configuration_invalid: 'The configuration has errors, which are shown next to the fields.',
  cross_site:
    'The server treats this page as another site. Configure the proxy to pass `Host` and `Origin` to unjank unchanged.',
};

function explain(status: number, code: string, detail: string, retryAfter?: number): string {
  if (code === OF_PAGE) return sentence(detail);
  if (status === 0) return 'The server is not responding. Check that it runs and that you are online, then try again.';
  const wait = retryAfter ? ` Try again in ${retryAfter} s.` : '';
  if (code === 'role') return `${sentence(detail)} Ask an admin of the project for this role.`;
  if (ADVICE[code]) return ADVICE[code];
  if (code === 'too_many_logins') return `Too many failed attempts.${wait || ' Try again later.'}`;
  if (status === 429 || status === 503)
    return `${sentence(detail || 'The server is busy')}${wait || ' Try again in a moment.'}`;
  if (status === 404 && code === '')
    return 'This server does not support this request. The server may be older than this page.';
  if (status >= 500) return `${sentence(detail || 'The server failed')} Try again. The server log has details.`;
  return sentence(detail || `The server refused the request (${status})`);
}

function sentence(text: string): string {
  const capital = text.charAt(0).toUpperCase() + text.slice(1);
  return /[.!?…]$/.test(capital) ? capital : `${capital}.`;
}
