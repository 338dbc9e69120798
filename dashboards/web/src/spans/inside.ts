// What ran inside spans of one name: functions, or the packages they are of. Pure but for `askInside`.

import { api, ask, type Schemas } from '../api/client';
import type { Filters } from '../navigation/filters';
import { bounds } from '../navigation/time_range';

export type Times = Schemas['InsideTimes'];
export type InsideRow = Schemas['InsideRow'];
export type Inside = Schemas['InsideSpans'];

export async function askInside(filters: Filters, name: string, signal: AbortSignal): Promise<Inside> {
  const { from, to } = bounds(filters.range, new Date());
  // A version is compared with a version.
  const base_app_version = filters.chosen.app_version && filters.baseVersion ? filters.baseVersion : undefined;
  const query = { ...filters.chosen, base_app_version, from: from.toISOString(), to: to.toISOString(), name: [name] };
  const path = { project: filters.project };
  return ask(api.GET('/api/v1/projects/{project}/spans/inside', { params: { path, query: query as never }, signal }));
}

const NOTHING: Times = { calls: 0, total_us: 0, self_us: 0, main_thread_us: 0 };

/** Rows of a package as one; what belongs to none, such as requests, stays apart by its name. */
export function byPackage(rows: InsideRow[]): InsideRow[] {
  const found = new Map<string, InsideRow>();
  for (const row of rows) {
    const name = row.package || row.name;
    const sum = found.get(name) ?? { name, package: row.package, ...NOTHING };
    const base = row.base || sum.base ? { base: together(sum.base ?? NOTHING, row.base ?? NOTHING) } : {};
    found.set(name, { ...sum, ...together(sum, row), ...base });
  }
  return [...found.values()].toSorted((a, b) => b.self_us - a.self_us);
}

/** Totals of callers hold those of what they called: of a package only the time of its own can be summed. */
function together(one: Times, other: Times): Times {
  return {
    calls: one.calls + other.calls,
    self_us: one.self_us + other.self_us,
    total_us: one.self_us + other.self_us,
    main_thread_us: one.main_thread_us + other.main_thread_us,
  };
}

/** Of a single span on either side, since not as many were looked into; nothing where a side has none. */
export function perSpan({ spans, base_spans }: Inside, row: InsideRow, of: 'calls' | 'self_us' | 'total_us') {
  const base = base_spans ? (row.base?.[of] ?? 0) / base_spans : null;
  return { now: spans ? row[of] / spans : null, base };
}

/** What a comparison says of a function besides numbers. */
export function verdict({ base_spans, spans }: Inside, row: InsideRow): 'new' | 'gone' | '' {
  if (!base_spans || !spans) return '';
  if (row.calls === 0) return 'gone';
  return row.base ? '' : 'new';
}
