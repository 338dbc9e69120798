// The filters that only janks have, as the address holds them. Pure.

import type { Where } from './questions';

export const OWN = ['kind', 'category', 'owner', 'causes'];

/** What the server is asked with. Samples of an idle loop are nobody's fault, and left out unless asked for. */
export function ownWhere(query: URLSearchParams): Where {
  const where: Where = {};
  for (const name of ['kind', 'category', 'owner']) {
    const value = query.get(name);
    if (value) where[name] = value;
  }
  if (query.get('causes') !== 'all') where.not_a_cause = 'false';
  return where;
}

/** What a link within the pages of janks keeps. */
export function ownParameters(query: URLSearchParams): Record<string, string> {
  return Object.fromEntries(OWN.flatMap((name) => (query.get(name) ? [[name, query.get(name)!]] : [])));
}
