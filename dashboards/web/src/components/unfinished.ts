// Unfinished time buckets. Their sums are not final, so charts draw them differently. Pure.

/** The index of the first bucket that ends after `now`, in seconds; the number of buckets if all are finished. */
export function firstUnfinished(times: number[], now: number): number {
  if (times.length < 2) return times.length;
  const step = times[1]! - times[0]!;
  const place = times.findIndex((time) => time + step > now);
  return place < 0 ? times.length : place;
}
