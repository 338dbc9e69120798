// Unfinished time buckets. Charts draw these buckets differently, because their sums are not final. Pure.

/** The index of the first bucket that ends after `now`, in seconds. If all buckets are finished, the number of buckets. */
export function firstUnfinished(times: number[], now: number): number {
  if (times.length < 2) return times.length;
  const step = times[1]! - times[0]!;
  const place = times.findIndex((time) => time + step > now);
  return place < 0 ? times.length : place;
}
