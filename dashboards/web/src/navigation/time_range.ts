// The period in the URL: `range=7d`, or `from=…&to=…`. Pure.

import { shortTime, wholeSeconds } from '../format/times';

export type TimeRange = { kind: 'relative'; text: string } | { kind: 'absolute'; from: Date; to: Date };

export const DEFAULT_RANGE = '7d';
export const RELATIVE_RANGES = [
  { text: '1h', label: 'Last hour' },
  { text: '24h', label: 'Last 24 hours' },
  { text: '7d', label: 'Last 7 days' },
  { text: '30d', label: 'Last 30 days' },
  { text: '90d', label: 'Last 90 days' },
];

const UNITS: Record<string, number> = { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 };

/** The length of a relative range in milliseconds. `null` if the text is invalid. */
export function relativeLength(text: string): number | null {
  const found = /^([1-9]\d{0,3})([mhdw])$/.exec(text);
  return found ? Number(found[1]) * UNITS[found[2]!]! : null;
}

export function readRange(query: URLSearchParams): TimeRange {
  const from = new Date(query.get('from') ?? '');
  const to = new Date(query.get('to') ?? '');
  if (from < to) return { kind: 'absolute', from, to };
  const text = query.get('range') ?? '';
  return { kind: 'relative', text: relativeLength(text) === null ? DEFAULT_RANGE : text };
}

/** Writes a range to a query, unless it is the default range. */
export function writeRange(range: TimeRange, query: URLSearchParams) {
  for (const key of ['range', 'from', 'to']) query.delete(key);
  if (range.kind === 'absolute') {
    query.set('from', wholeSeconds(range.from));
    query.set('to', wholeSeconds(range.to));
  } else if (range.text !== DEFAULT_RANGE) {
    query.set('range', range.text);
  }
}

/**
 * The start and end of a range, for queries. A relative range of one day or more begins with a whole UTC hour, and from three days on with
 * a whole UTC day. Roll-ups have the same units, so single events and roll-ups cover the same period.
 */
export function bounds(range: TimeRange, now: Date): { from: Date; to: Date } {
  if (range.kind === 'absolute') return { from: range.from, to: range.to };
  const length = relativeLength(range.text) ?? 0;
  const unit = length >= 3 * UNITS.d! ? UNITS.d! : length >= UNITS.d! ? UNITS.h! : 1;
  const from = now.getTime() - length;
  return { from: new Date(from - (from % unit)), to: now };
}

/** The period to display for a range, in the units of roll-ups: whole UTC days from three days on, whole hours for shorter ranges. */
export function wholeUnits(range: TimeRange, now: Date): { from: Date; to: Date } {
  const { from, to } = bounds(range, now);
  const unit = to.getTime() - from.getTime() >= 3 * UNITS.d! ? UNITS.d! : UNITS.h!;
  const [first, last] = [Math.floor(from.getTime() / unit), Math.ceil(to.getTime() / unit)];
  return { from: new Date(first * unit), to: new Date(last * unit) };
}

export function rangeLabel(range: TimeRange): string {
  if (range.kind === 'relative') {
    return RELATIVE_RANGES.find((one) => one.text === range.text)?.label ?? `Last ${range.text}`;
  }
  return `${shortTime(range.from)} – ${shortTime(range.to)}`;
}
