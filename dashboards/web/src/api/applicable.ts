// Which filters a signal supports. For example, traffic has no page, and the health of the SDK has no network. Pure.

import {
  DIMENSIONS,
  hasAttributes,
  isAttribute,
  withoutAttributes,
  type Dimension,
  type FilterName,
  type Filters,
} from '../navigation/filters';
import type { Signal } from './query';

const WITHOUT: Partial<Record<Signal, Dimension[]>> = {
  traffic: ['page'],
  start_phases: ['page', 'network'],
  sessions: ['page', 'network'],
  usage: ['page', 'network'],
  sdk_health: ['page', 'network'],
  sdk_drops: ['page', 'network'],
  outcomes: DIMENSIONS.map(({ name }) => name),
};

/** Removes the filters by dimensions and attributes that the signal lacks, because the server would reject the whole query. */
export function applicable(filters: Filters, signal: Signal): Filters {
  const chosen = { ...(hasAttributes(signal) ? filters : withoutAttributes(filters)).chosen };
  for (const dimension of WITHOUT[signal] ?? []) delete chosen[dimension];
  const baseVersion = signal === 'outcomes' ? '' : filters.baseVersion;
  return { ...filters, chosen, baseVersion };
}

/** The chosen dimensions and attributes that the signal lacks. */
export function ignored(filters: Filters, signal: Signal): FilterName[] {
  const attributes = hasAttributes(signal) ? [] : Object.keys(filters.chosen).filter(isAttribute);
  return [...(WITHOUT[signal] ?? []), ...attributes].filter((name) => filters.chosen[name]);
}
