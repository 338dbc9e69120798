// Janks per hour of use, because a version with more use has more janks without being worse.

import { queryTable } from '../api/query';
import type { Filters } from '../navigation/filters';

export interface HoursOfUse {
  hours: number;
  baseHours: number;
}

export const HOUR_MS = 3_600_000;

/** Hours in which frames were measured, which is the time that the app was on the screen. */
export async function hoursOfUse(filters: Filters, signal: AbortSignal): Promise<HoursOfUse> {
  const answer = await queryTable(filters, { signal: 'frame_windows', measures: ['duration_ms'] }, signal);
  const row = answer.rows[0];
  return { hours: (row?.values[0] ?? 0) / HOUR_MS, baseHours: (row?.base?.[0] ?? 0) / HOUR_MS };
}

export function perHour(count: number | null | undefined, hours: number): number | null {
  return hours > 0 ? (count ?? 0) / hours : null;
}

/** Divides a series by another series, whose steps may be shorter. `null` where the divisor is 0. */
export function ratesOver(
  times: number[],
  counts: (number | null)[],
  use: { times: number[]; values: (number | null)[] },
): (number | null)[] {
  const sums = times.map(() => 0);
  use.times.forEach((time, index) => {
    const place = times.findLastIndex((one) => one <= time);
    if (place >= 0) sums[place]! += use.values[index] ?? 0;
  });
  return times.map((_, place) => (sums[place]! > 0 ? (counts[place] ?? 0) / sums[place]! : null));
}
