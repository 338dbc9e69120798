// Days of traffic: calendar days of the device, in the format of the API. Pure.

import { utcDay } from '../format/times';
import type { Filters } from '../navigation/filters';

const DAY_MS = 86_400_000;

/** Every day from the first to the last, so that charts show days without traffic as gaps. */
export function everyDay(days: string[]): string[] {
  const sorted = days.filter((day) => /^\d{4}-\d\d-\d\d$/.test(day)).toSorted();
  const [first, last] = [sorted[0], sorted.at(-1)];
  if (!first || !last) return [];
  const found: string[] = [];
  for (let at = Date.parse(first); at <= Date.parse(last) && found.length < 400; at += DAY_MS) {
    found.push(utcDay(at));
  }
  return found;
}

/** The filters narrowed to one day. */
export function onDay(filters: Filters, day: string): Filters {
  const from = new Date(`${day}T00:00:00Z`);
  return { ...filters, baseVersion: '', range: { kind: 'absolute', from, to: new Date(from.getTime() + DAY_MS) } };
}

/** Values by name and category. The largest names come first, and names beyond `most` are merged. */
export function stack(
  parts: { category: string; name: string; value: number }[],
  categories: string[],
  most = 9,
): { label: string; values: number[] }[] {
  const sums = new Map<string, number[]>();
  for (const { category, name, value } of parts) {
    const values = sums.get(name) ?? categories.map(() => 0);
    sums.set(name, values);
    const place = categories.indexOf(category);
    if (place >= 0) values[place]! += value;
  }
  const whole = (values: number[]) => values.reduce((sum, value) => sum + value, 0);
  const sorted = [...sums]
    .toSorted(([, a], [, b]) => whole(b) - whole(a))
    .map(([label, values]) => ({ label, values }));
  const rest = sorted.slice(most);
  if (rest.length <= 1) return sorted;
  const others = categories.map((_, index) => rest.reduce((sum, one) => sum + one.values[index]!, 0));
  return [...sorted.slice(0, most), { label: `${rest.length} others`, values: others }];
}
