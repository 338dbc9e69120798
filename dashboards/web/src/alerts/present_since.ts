// Finds the time at which the number of an incident became bad, from the points of its chart. Pure.

import type { SeriesAnswer } from '../api/query';
import type { Evidence } from './incident';

export interface PresentSince {
  /** The start of a bucket of the chart, in seconds since the epoch, but not before `firstSeen`. */
  at: number;
  /** Whether the first number of the chart was already bad. */
  isFirst: boolean;
  /** The bad values are above or below this number. */
  limit: number;
  isAbove: boolean;
}

/**
 * `firstSeen`: when the version was first seen, in seconds since the epoch. Returns `null` if the rule has no fixed limit, or if the
 * number was good when the alert opened.
 */
export function presentSince(
  evidence: Evidence,
  chart: SeriesAnswer,
  openedAt: number,
  firstSeen = 0,
): PresentSince | null {
  const bad = limitOf(evidence);
  const version = evidence.sides.base_version ? evidence.sides.version : undefined;
  const line = version ? chart.series.find((one) => one.keys[0] === version) : chart.series[0];
  const values = line?.values[evidence.metric.measure];
  if (!bad || !values) return null;
  const isBad = (value: number) => (bad.isAbove ? value > bad.limit : value < bad.limit);
  const known = chart.times
    .map((at, place) => ({ at, value: values[place] }))
    .filter((one): one is { at: number; value: number } => typeof one.value === 'number' && one.at <= openedAt);
  let first = known.length;
  // A single good number between bad ones is noise.
  while (first > 0 && (isBad(known[first - 1]!.value) || (first > 1 && isBad(known[first - 2]!.value)))) first -= 1;
  while (first < known.length && !isBad(known[first]!.value)) first += 1;
  // Uses `firstSeen` as the lower limit, because a bucket begins before its first data.
  return first < known.length ? { at: Math.max(known[first]!.at, firstSeen), isFirst: first === 0, ...bad } : null;
}

function limitOf({ condition, numbers }: Evidence): { limit: number; isAbove: boolean } | null {
  const { base, bound } = numbers;
  if (typeof bound !== 'number') return null;
  if (condition.kind === 'threshold') return { limit: bound, isAbove: typeof condition.below !== 'number' };
  if (condition.kind !== 'regression' || typeof base !== 'number') return null;
  return { limit: base * (1 + bound), isAbove: bound >= 0 };
}
