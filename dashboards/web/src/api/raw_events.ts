// Filters that roll-ups do not keep. With such a filter, the server reads raw events, which are kept for a shorter time. Pure.

import { DIMENSIONS, filterLabel, isAttribute, type Dimension, type Filters } from '../navigation/filters';
import { bounds } from '../navigation/time_range';

/** Dimensions of all roll-ups. */
const KEPT: Dimension[] = ['app_id', 'app_version', 'os_name', 'device_class'];
/** Dimensions that only some roll-ups keep. Each value lists the data for which the server reads raw events. */
const PARTLY: Partial<Record<Dimension, string>> = {
  page: 'spans, requests and app starts',
  network: 'all but traffic and page loads',
};

/** Sessions, installs and SDKs are counted from batches, which are kept for this many days. */
export const BATCH_DAYS = 8;
const DAY_MS = 86_400_000;

/** The labels of the chosen filters that read raw events, such as `Build` and `Page (spans, requests and app starts)`. */
export function rawFilters(filters: Filters): string[] {
  const dimensions = DIMENSIONS.filter(({ name }) => filters.chosen[name] && !KEPT.includes(name)).map(
    ({ name, label }) => (PARTLY[name] ? `${label} (${PARTLY[name]})` : label),
  );
  return [...dimensions, ...Object.keys(filters.chosen).filter(isAttribute).map(filterLabel)];
}

/** `rawDays`: for how many days the project keeps raw events. 0 means forever, `undefined` means not loaded yet. */
export function rawNote(filters: Filters, rawDays: number | undefined, now: Date): string {
  const names = rawFilters(filters);
  const kept =
    rawDays === undefined
      ? ''
      : rawDays === 0
        ? ', which this project keeps forever'
        : `, which are kept for ${rawDays} days`;
  const noun = names.length === 1 ? 'the filter' : 'the filters';
  const batches = ` Sessions, installs and SDKs on Overview and Ingest health come from batches, which are kept for ${BATCH_DAYS} days.`;
  const isLonger = bounds(filters.range, now).from.getTime() < now.getTime() - BATCH_DAYS * DAY_MS;
  return `With ${noun} ${names.join(' and ')}, results come from raw events${kept}.${isLonger ? batches : ''}`;
}

/** Whether the period begins before the first raw event that is kept. */
export function isCutByRetention({ range }: Filters, rawDays: number | undefined, now: Date): boolean {
  if (!rawDays) return false;
  // Retention works in whole days.
  return bounds(range, now).from.getTime() < now.getTime() - (rawDays + 1) * DAY_MS;
}
