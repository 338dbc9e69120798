// Links for reports: a relative period such as "last 7 days" becomes fixed times. Pure.

import type { TableAnswer } from '../api/query';
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

/**
 * The period of an answer. This period can differ from the requested period: roll-ups have whole days, and versions are compared at the
 * same age.
 */
type Periods = Pick<TableAnswer, 'from' | 'to' | 'base_from' | 'base_to'>;

/** The filters with the period that an answer is about. */
export function seenFilters(filters: Filters, of: Periods): Filters {
  return { ...filters, range: { kind: 'absolute', from: new Date(of.from), to: new Date(of.to) } };
}

/** The period and the filters in words. */
export function seenFacts(filters: Filters, of?: Periods): [string, string][] {
  const { range } = withFixedTime(of ? seenFilters(filters, of) : filters);
  if (range.kind !== 'absolute') return [];
  const chosen = Object.entries(filters.chosen).map(([name, values = []]) => `${name} ${values.join(' or ')}`);
  const text = (first: Date, last: Date) => `${dateTime(first)} to ${dateTime(last)} (${zoneText(last)})`;
  const { baseVersion } = filters;
  const base =
    of?.base_from && of.base_to ? `, at the same age: ${text(new Date(of.base_from), new Date(of.base_to))}` : '';
  return [
    ['Period', text(range.from, range.to)],
    ['Filters', chosen.join(', ')],
    ['Compared with', baseVersion && `${baseVersion}${base}`],
  ];
}
