// The share of a version over time. Pure.

import type { SeriesAnswer } from '../api/query';

/** For each bucket of all versions, the share of one version. `null` in buckets without any use. */
export function sharesOfVersion(ofVersion: SeriesAnswer, ofAll: SeriesAnswer, measure: string): (number | null)[] {
  const parts = new Map(ofVersion.times.map((time, place) => [time, ofVersion.series[0]?.values[measure]?.[place]]));
  return ofAll.times.map((time, place) => {
    const whole = ofAll.series[0]?.values[measure]?.[place] ?? 0;
    return whole > 0 ? Math.min(1, (parts.get(time) ?? 0) / whole) : null;
  });
}
