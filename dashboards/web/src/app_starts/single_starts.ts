// Queries single app starts, and links to the spans of a start.

import type { Schemas } from '../api/client';
import { address, get } from '../api/query';
import type { Filters } from '../navigation/filters';
import { addressOf } from '../navigation/links';

export type AppStart = Schemas['StoredAppStart'];

/** Which starts to load: the slowest, or those nearest to a duration. */
export type First = { slowest: true } | { nearMs: number };

export function singleStarts(
  filters: Filters,
  { kind, first, limit }: { kind: string; first: First; limit: number },
  signal: AbortSignal,
): Promise<{ starts: AppStart[] }> {
  const order = 'slowest' in first ? '-duration_ms' : undefined;
  const more: Record<string, string> = 'nearMs' in first ? { near_us: String(Math.round(first.nearMs * 1000)) } : {};
  const question = { signal: 'app_starts' as const, where: { kind }, order, limit, compare: false };
  return get(address(filters, question, '', more).replace('/query/app_starts', '/app-starts'), signal);
}

/** The spans of the session during the start. */
export function tracesOf(project: string, { start, duration_ms, session_id }: AppStart): string {
  const at = Date.parse(start);
  const range = { kind: 'absolute', from: new Date(at - 1000), to: new Date(at + duration_ms + 1000) } as const;
  return addressOf('/traces', { project, range, chosen: {}, baseVersion: '' }, { session_id, order: 'latest' });
}

/** The phase that took longest: `di, 1.2 s of 2 s` is `{ name: 'di', duration_ms: 1200 }`. */
export function longestPhase({ phases }: AppStart): AppStart['phases'][number] | undefined {
  return phases.toSorted((a, b) => b.duration_ms - a.duration_ms)[0];
}
