// The kinds of spans, and their names on the screen. Pure.

const NAMES = {
  manual: 'operation',
  method: 'method',
  init: 'construction',
  network: 'request',
  page: 'page',
  app_start: 'app start',
};

/** The kinds of the API, in the order of the screens. */
export const KINDS: string[] = Object.keys(NAMES);

/** The name of a kind. An unknown kind keeps its API name. */
export function kindName(kind: string): string {
  return (NAMES as Record<string, string>)[kind] ?? kind;
}
