// The values of a dimension that devices sent in a period, the most frequent first.

import { queryTable, type Question, type Signal } from '../api/query';
import { format } from '../format/units';
import { attributedSignal, isAttribute, type Dimension, type FilterName, type Filters } from '../navigation/filters';

export interface Value {
  value: string;
  label: string;
  note: string;
}

/** The maximum number of values in a list. The search of the list finds all other values. */
export const MOST = 200;
const MOST_FOUND = 50;

/** The signals to try, in this order. Batches have the fewest rows, but are kept for only a few days. */
const SIGNALS: Signal[] = ['usage', 'app_starts', 'frame_windows', 'spans'];
/** Dimensions that batches do not carry. */
const OTHER: Partial<Record<Dimension, Signal[]>> = { page: ['frame_windows', 'spans'], network: ['traffic', 'spans'] };

/** The events of a page whose attributes its filters know: the metrics or spans with the names in its URL. */
export type Events = Required<Pick<Question, 'signal' | 'where'>>;

export function eventsOf(path: string, query: URLSearchParams): Events | undefined {
  const signal = attributedSignal(path);
  const name = query.getAll(signal === 'metrics' ? 'metric' : 'name');
  return signal && { signal, where: name.length > 0 ? { name } : {} };
}

/** With `contains`, returns only values that contain this text. `events` have the attributes. */
export async function valuesOf(
  filters: Filters,
  dimension: FilterName,
  contains: string,
  abort: AbortSignal,
  events?: Events,
): Promise<Value[]> {
  const unfiltered = { ...filters, chosen: {}, baseVersion: '' };
  const where = isAttribute(dimension) ? events?.where : undefined;
  const signals = isAttribute(dimension) ? [events?.signal ?? 'spans'] : (OTHER[dimension] ?? SIGNALS);
  for (const signal of signals) {
    // Traffic has no count of events, only sums.
    const measure = signal === 'traffic' ? 'requests' : 'count';
    const question = { signal, by: [dimension], measures: [measure], order: `-${measure}`, where };
    const limit = contains ? MOST_FOUND : MOST;
    const { rows } = await queryTable(unfiltered, { ...question, limit, contains: { [dimension]: contains } }, abort);
    const values = rows.flatMap(({ keys: [value], values: [count] }) =>
      value ? [{ value, label: value, note: format(count) }] : [],
    );
    if (values.length > 0) return values;
  }
  return [];
}
