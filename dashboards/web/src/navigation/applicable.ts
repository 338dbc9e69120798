// Not every signal knows every dimension: the use of an app has no page. A filter that does not apply is left out, and said so.

import type { Signal } from '../api/query';
import { DIMENSIONS, type Dimension, type Filters } from './filters';

const LACKING: Partial<Record<Signal, Dimension[]>> = {
  usage: ['page', 'network'],
  sdk_health: ['page', 'network'],
  sdk_drops: ['page', 'network'],
  outcomes: DIMENSIONS.map((one) => one.name),
};

export function applicable(filters: Filters, signal: Signal): Filters {
  const lacking = LACKING[signal] ?? [];
  if (!lacking.some((name) => filters.chosen[name])) return filters;
  const chosen = { ...filters.chosen };
  for (const name of lacking) delete chosen[name];
  return { ...filters, chosen };
}

/** The names of the chosen filters that a signal does not know. */
export function leftOut(filters: Filters, signal: Signal): string[] {
  const lacking = LACKING[signal] ?? [];
  return DIMENSIONS.filter(({ name }) => filters.chosen[name] && lacking.includes(name)).map((one) => one.label);
}
