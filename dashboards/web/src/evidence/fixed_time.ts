// Links for reports: a relative period such as "last 7 days" becomes fixed times. Pure.

import { dateTime } from '../format/times';
import { zoneText } from '../format/zone.svelte';
import { addressOf } from '../navigation/links';
import type { Filters } from '../navigation/filters';
import { bounds } from '../navigation/time_range';

export function withFixedTime(filters: Filters, now = new Date()): Filters {
  return { ...filters, range: { kind: 'absolute', ...bounds(filters.range, now) } };
}

/** The address of a page with fixed times. */
export function fixedAddress(page: string, filters: Filters, parameters: Record<string, string> = {}): string {
  return addressOf(page, withFixedTime(filters), parameters);
}

/** The period and the filters in words. */
export function seenFacts(filters: Filters): [string, string][] {
  const { range } = withFixedTime(filters);
  if (range.kind !== 'absolute') return [];
  const chosen = Object.entries(filters.chosen).map(([name, values]) => `${name} ${values.join(' or ')}`);
  return [
    ['Period', `${dateTime(range.from)} to ${dateTime(range.to)} (${zoneText(range.to)})`],
    ['Filters', chosen.join(', ')],
    ['Compared with', filters.baseVersion],
  ];
}
