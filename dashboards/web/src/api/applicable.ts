// Which filters a signal supports. For example, traffic has no page, and the health of the SDK has no network. Pure.

import { DIMENSIONS, type Dimension, type Filters } from '../navigation/filters';
import type { Signal } from './query';

const WITHOUT: Partial<Record<Signal, Dimension[]>> = {
  traffic: ['page'],
  start_phases: ['page', 'network'],
  usage: ['page', 'network'],
  sdk_health: ['page', 'network'],
  sdk_drops: ['page', 'network'],
  outcomes: DIMENSIONS.map(({ name }) => name),
};

/** Removes the filters by dimensions that the signal lacks, because the server would reject the whole query. */
export function applicable(filters: Filters, signal: Signal): Filters {
  const chosen = { ...filters.chosen };
  for (const dimension of WITHOUT[signal] ?? []) delete chosen[dimension];
  const baseVersion = signal === 'outcomes' ? '' : filters.baseVersion;
  return { ...filters, chosen, baseVersion };
}

/** The chosen dimensions that the signal lacks. */
export function ignored(filters: Filters, signal: Signal): Dimension[] {
  return (WITHOUT[signal] ?? []).filter((dimension) => filters.chosen[dimension]);
}
