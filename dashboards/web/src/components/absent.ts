// What stands in place of a value that a page does not have.

/** A request, such as a `Loading`. */
export interface Source {
  readonly data: unknown;
  readonly busy: boolean;
  readonly problem: unknown;
}

export function isLoading(from: Source): boolean {
  return from.busy || (from.data === undefined && !from.problem);
}

/** Tells a value that is still loading from one that does not exist. */
export function absent(from?: Source): string {
  if (from && isLoading(from)) return '…';
  return from?.problem ? 'not loaded' : '–';
}
