// Text for a missing value: loading, failed or none.

/** A request, such as a `Loading`. */
export interface Source {
  readonly data: unknown;
  readonly busy: boolean;
  readonly problem: unknown;
}

export function isLoading(from: Source): boolean {
  return from.busy || (from.data === undefined && !from.problem);
}

/** Distinguishes a value that is still loading from a missing value. */
export function absent(from?: Source): string {
  if (from && isLoading(from)) return '…';
  return from?.problem ? 'not loaded' : '–';
}
