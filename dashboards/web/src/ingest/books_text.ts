// The result of the last check of the books, as text. Pure.

import type { Schemas } from '../api/client';
import { dateTime, format, fromMicros, grouped } from '../format/units';
import { signalLabel } from './reasons';

export type Books = Schemas['Books'];

/** The result as text. Empty before the first check. */
export function booksText({ checked_to, difference_events, differences: [first] }: Books): string {
  if (!checked_to) return '';
  if (!first) return `Books balanced up to ${dateTime(fromMicros(checked_to))}.`;
  return `${format(difference_events)} events differ. First: ${signalLabel(first.signal)}, ${dateTime(fromMicros(first.at))}, expected ${grouped(first.expected)}, found ${grouped(first.found)}. See all: unjank rollups check.`;
}

/** How soon stored rows can be queried. Empty if nothing was stored in the last minutes. */
export function freshnessText({ freshness }: Books): string {
  if (!freshness) return '';
  const [half, most] = [freshness.p50_us, freshness.p99_us].map((us) => format(us, 'us'));
  return `In the last five minutes, half of the batches could be queried within ${half} of their arrival, and 99 % within ${most}.`;
}
