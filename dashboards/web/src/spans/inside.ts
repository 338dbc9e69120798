// What ran inside spans of one name: functions, or the packages they are of. Pure but for `askInside`.

import { api, ask } from '../api/client';
import type { Filters } from '../navigation/filters';
import { bounds } from '../navigation/time_range';

export interface InsideRow {
  name: string;
  package: string;
  calls: number;
  total_us: number;
  self_us: number;
  /** Of `self_us`. */
  main_thread_us: number;
}

export interface Inside {
  spans: number;
  total_us: number;
  rows: InsideRow[];
}

export async function askInside(filters: Filters, name: string, signal: AbortSignal): Promise<Inside> {
  const { from, to } = bounds(filters.range, new Date());
  const query = { ...filters.chosen, from: from.toISOString(), to: to.toISOString(), name: [name] };
  const path = { project: filters.project };
  const answer = ask(
    api.GET('/api/v1/projects/{project}/spans/inside', { params: { path, query: query as never }, signal }),
  );
  return (await answer) as unknown as Inside;
}

/** Rows of a package as one; what belongs to none, such as requests, stays apart by its name. */
export function byPackage(rows: InsideRow[]): InsideRow[] {
  const found = new Map<string, InsideRow>();
  for (const row of rows) {
    const name = row.package || row.name;
    const sum = found.get(name) ?? { name, package: row.package, calls: 0, total_us: 0, self_us: 0, main_thread_us: 0 };
    // Totals of callers hold those of what they called: of a package only the time of its own can be summed.
    found.set(name, {
      ...sum,
      calls: sum.calls + row.calls,
      self_us: sum.self_us + row.self_us,
      total_us: sum.self_us + row.self_us,
      main_thread_us: sum.main_thread_us + row.main_thread_us,
    });
  }
  return [...found.values()].toSorted((a, b) => b.self_us - a.self_us);
}
