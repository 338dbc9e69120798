// The filters that only janks have, as parameters of the URL. Pure.

import type { Where } from './queries';

export const OWN = ['kind', 'category', 'owner', 'strategy', 'causes', 'status'];

/**
 * Converts the filters of the URL to filters of the server. By default, selects only open groups, and excludes samples of an idle loop,
 * which are not a cause of stalls.
 */
export function ownWhere(query: URLSearchParams): Where {
  const where: Where = {};
  for (const name of ['kind', 'category', 'owner', 'strategy']) {
    const value = query.get(name);
    if (value) where[name] = value;
  }
  if (query.get('causes') !== 'all') where.not_a_cause = 'false';
  const status = query.get('status') || 'open';
  if (status !== 'all') where.group_status = status;
  return where;
}

/** The parameters that links between the pages of janks keep. */
export function ownParameters(query: URLSearchParams, names = OWN): Record<string, string> {
  return Object.fromEntries(names.flatMap((name) => (query.get(name) ? [[name, query.get(name)!]] : [])));
}
