// Filters that roll-ups do not keep. With such a filter, the server reads raw events, which are kept for a shorter time. Pure.

import { DIMENSIONS, type Dimension, type Filters } from '../navigation/filters';
import { bounds } from '../navigation/time_range';

/** Dimensions of all roll-ups. */
const KEPT: Dimension[] = ['app_id', 'app_version', 'os_name', 'device_class'];
/** Dimensions of only some roll-ups, each with the data for which the server reads raw events. */
const PARTLY: Partial<Record<Dimension, string>> = {
  page: 'spans, requests and app starts',
  network: 'all but traffic and page loads',
};

/** Sessions, installs and SDKs are counted from batches, which are kept for this many days. */
export const BATCH_DAYS = 8;
const DAY_MS = 86_400_000;

/** The chosen filters that read raw events, such as `Build` and `Page (spans, requests and app starts)`. */
export function rawFilters(filters: Filters): string[] {
  return DIMENSIONS.filter(({ name }) => filters.chosen[name] && !KEPT.includes(name)).map(({ name, label }) =>
    PARTLY[name] ? `${label} (${PARTLY[name]})` : label,
  );
}

/** `rawDays`: how long the project keeps raw events. 0: forever. Missing while it is unknown. */
export function rawNote(filters: Filters, rawDays: number | undefined, now: Date): string {
  const names = rawFilters(filters);
  const kept =
    rawDays === undefined
      ? ''
      : rawDays === 0
        ? ', which this project keeps without limit'
        : `, kept for ${rawDays} days`;
  const noun = names.length === 1 ? 'The filter' : 'The filters';
  const verb = names.length === 1 ? 'reads' : 'read';
  const batches = ` Overview and Ingest health count sessions, installs and SDKs from batches, kept for ${BATCH_DAYS} days.`;
  const isLonger = bounds(filters.range, now).from.getTime() < now.getTime() - BATCH_DAYS * DAY_MS;
  return `${noun} ${names.join(' and ')} ${verb} raw events${kept}.${isLonger ? batches : ''}`;
}

/** Whether the period begins before the first raw event that is kept. */
export function isCutByRetention({ range }: Filters, rawDays: number | undefined, now: Date): boolean {
  if (!rawDays) return false;
  // Retention works in whole days.
  return bounds(range, now).from.getTime() < now.getTime() - (rawDays + 1) * DAY_MS;
}
