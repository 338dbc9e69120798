// The functions or packages that ran inside the spans of one name. Pure except for the queries.

import { format, probability } from '../format/units';
import { queryTable } from '../api/query';
import { api, ask, type Schemas } from '../api/client';
import { comparison, type Filters } from '../navigation/filters';
import { bounds } from '../navigation/time_range';

export type Times = Schemas['InsideTimes'];
export type InsideRow = Schemas['InsideRow'];
export type Inside = Schemas['InsideSpans'];

function queryOf(filters: Filters) {
  const { from, to } = bounds(filters.range, new Date());
  // Compares only if a version is chosen, because the base has no counterpart without a chosen version.
  const compared = filters.chosen.app_version ? comparison(filters) : {};
  return { ...filters.chosen, ...compared, from: from.toISOString(), to: to.toISOString() };
}

export async function askInside(filters: Filters, name: string, signal: AbortSignal): Promise<Inside> {
  const query = { ...queryOf(filters), name: [name] };
  const path = { project: filters.project };
  return ask(api.GET('/api/v1/projects/{project}/spans/inside', { params: { path, query: query as never }, signal }));
}

/** The owners of functions, by name. The owner of a function is the owner of the janks in which the function blocked the main thread. */
export async function ownersOf(filters: Filters, names: string[], signal: AbortSignal): Promise<Map<string, string>> {
  if (names.length === 0) return new Map();
  const where = { culprit: names };
  const question = { signal: 'janks' as const, by: ['culprit', 'owner'], measures: ['count'], order: 'count', where };
  const { rows } = await queryTable(filters, { ...question, limit: 100, compare: false }, signal);
  // The owner of most janks is last, and overwrites the others.
  return new Map(rows.map(({ keys: [name = '', owner = ''] }) => [name, owner]));
}

export type Packages = Schemas['Packages'];
export type PackageRow = Schemas['PackageRow'];

export async function askPackages(filters: Filters, signal: AbortSignal): Promise<Packages> {
  const query = queryOf(filters);
  const path = { project: filters.project };
  return ask(api.GET('/api/v1/projects/{project}/spans/packages', { params: { path, query: query as never }, signal }));
}

const NONE: Schemas['PerTraced'] = { spans: 0, calls: 0, total_us: 0, self_us: 0, main_thread_us: 0 };
const NOTHING: Times = { calls: 0, recorded: 0, total_us: 0, self_us: 0, main_thread_us: 0, per_traced: NONE };

/** Merges the rows of each package. Rows without a package, such as requests, keep their names. */
export function byPackage(rows: InsideRow[]): InsideRow[] {
  const found = new Map<string, InsideRow>();
  for (const row of rows) {
    const name = row.package || row.name;
    const sum = found.get(name);
    if (!sum) {
      found.set(name, { ...row, ...together(NOTHING, row), name });
      continue;
    }
    const base = row.base || sum.base ? { base: together(sum.base ?? NOTHING, row.base ?? NOTHING) } : {};
    found.set(name, {
      ...sum,
      ...together(sum, row),
      ...base,
      by_time: sum.by_time + row.by_time,
      base_traced: least(sum.base_traced, row.base_traced),
      // Corrected for the number of names, so the clearest function of a package speaks for the package.
      p: least(sum.p, row.p),
      p_main_thread: least(sum.p_main_thread, row.p_main_thread),
    });
  }
  return [...found.values()].toSorted((a, b) => b.per_traced.self_us - a.per_traced.self_us);
}

/** The total time of a caller includes its callees, so only the self times of a package can be summed. */
function together(one: Times, other: Times): Times {
  const [a, b] = [one.per_traced, other.per_traced];
  return {
    calls: one.calls + other.calls,
    recorded: one.recorded + other.recorded,
    self_us: one.self_us + other.self_us,
    total_us: one.self_us + other.self_us,
    main_thread_us: one.main_thread_us + other.main_thread_us,
    per_traced: {
      spans: least(a.spans || undefined, b.spans || undefined) ?? 0,
      calls: a.calls + b.calls,
      self_us: a.self_us + b.self_us,
      total_us: a.self_us + b.self_us,
      main_thread_us: a.main_thread_us + b.main_thread_us,
    },
  };
}

function least(one: number | null | undefined, other: number | null | undefined): number | undefined {
  const found = Math.min(one ?? Infinity, other ?? Infinity);
  return found === Infinity ? undefined : found;
}

/** The self time of one call in traced spans. */
export function perCall({ per_traced: { calls, self_us } }: Pick<Times, 'per_traced'>): number | null {
  return calls > 0 ? self_us / calls : null;
}

/** Whether a function is new or gone. Empty if too few installs were traced to tell, or if it may be chance. */
export function verdict(row: InsideRow): 'new' | 'gone' | '' {
  if (!row.base_traced || !row.per_traced.spans) return '';
  if (!isCertain(row.p) && !isCertain(row.p_main_thread)) return '';
  if (row.calls === 0) return 'gone';
  return row.base ? '' : 'new';
}

/** Calls without a link to the span are attributed to it by time. Returns how many, as text. Empty if there are none. */
export function origin(row: InsideRow): string {
  if (row.by_time === 0) return '';
  return row.by_time === row.recorded ? 'by time' : `${row.by_time} by time`;
}

/** One function whose time in a traced span differs between the two versions. */
export interface Move {
  row: InsideRow;
  /** The change of the self time or of the time on the main thread, whichever is clearer, in microseconds per traced span. */
  change: number;
  /** The p-value of the change. `null` if too few installs were traced. */
  p: number | null;
  /** Whether the same work moved to or from the main thread. */
  thread: 'to the main thread' | 'off the main thread' | '';
}

/** A change with a p-value below this level is significant. */
const CERTAIN = 0.01;
export const isCertain = (p: number | null | undefined) => typeof p === 'number' && p < CERTAIN;
/** The smallest change to list, as a share of the mean duration of the span. */
const LEAST_SHARE = 0.005;

/** The functions whose time changed most. Significant changes come first. */
export function moves(data: Inside, most: number): Move[] {
  const least = (LEAST_SHARE * data.total_us) / Math.max(1, data.spans);
  const found = data.rows
    .filter((row) => row.per_traced.spans > 0 && (row.base_traced ?? 0) > 0)
    .map(moveOf)
    .filter(({ change }) => Math.abs(change) > least);
  return found
    .toSorted((a, b) => Number(isCertain(b.p)) - Number(isCertain(a.p)) || Math.abs(b.change) - Math.abs(a.change))
    .slice(0, most);
}

function moveOf(row: InsideRow): Move {
  const [now, before] = [row.per_traced, row.base?.per_traced ?? NONE];
  const own = now.self_us - before.self_us;
  const onMain = now.main_thread_us - before.main_thread_us;
  const isOfThread = Math.abs(onMain) > 2 * Math.abs(own);
  const thread = !isOfThread ? '' : onMain > 0 ? 'to the main thread' : 'off the main thread';
  const [change, p] = isOfThread ? [onMain, row.p_main_thread] : [own, row.p];
  return { row, change, p: p ?? null, thread };
}

/** How much longer a traced span takes than in the base, in microseconds. `null` if one of the versions has no traced span. */
export function changeOfSpan(data: Inside, name: string): number | null {
  const row = data.rows.find((one) => one.name === name);
  if (!row?.base || row.per_traced.spans === 0 || row.base.per_traced.spans === 0) return null;
  return row.per_traced.total_us - row.base.per_traced.total_us;
}

/** The part of the span's change that a function explains: `258 ms of 697 ms`. Empty if the two changed in opposite directions. */
export function explains(change: number, all: number | null): string {
  if (all === null || change * all <= 0) return '';
  const [part, whole] = [Math.abs(change), Math.abs(all)];
  return part >= whole ? `all ${format(whole, 'us')}` : `${format(part, 'us')} of ${format(whole, 'us')}`;
}

/** A p-value such as `p < 0.001`. Words if there is no p-value. */
export function chanceText(p: number | null): string {
  if (p === null) return 'few samples';
  const text = p < 0.001 ? `p ${probability(p)}` : `p = ${probability(p)}`;
  return isCertain(p) ? text : `may be chance, ${text}`;
}
