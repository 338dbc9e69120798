// Merges the measures of a second, slower request into a table, so that the other numbers do not wait for them. Pure.

import { valueOf, type Measure, type TableAnswer } from '../api/query';

/** The second request. */
export interface Later {
  readonly data: TableAnswer | null | undefined;
  readonly busy: boolean;
}

/**
 * Adds the measures that the first answer lacks to its rows. They are `null` until the second answer arrives, and in rows that it lacks. Adds
 * nothing to the values of a base.
 */
export function withLater(first: TableAnswer, later: Later, measures: Measure[]): TableAnswer {
  const missing = measures.filter(({ name }) => !first.measures.some((one) => one.name === name));
  if (missing.length === 0) return first;
  // While a request is under way, its previous answer may be of other filters.
  const answer = later.busy ? null : later.data;
  const found = new Map(answer?.rows.map((row) => [JSON.stringify(row.keys), row]));
  const rows = first.rows.map((row) => {
    const same = found.get(JSON.stringify(row.keys));
    const values = missing.map(({ name }) => (answer && same ? valueOf(answer, same, name) : null));
    return { ...row, values: [...row.values, ...values] };
  });
  return { ...first, measures: [...first.measures, ...missing], rows };
}
