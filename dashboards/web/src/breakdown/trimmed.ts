// Removes the empty buckets at both ends of a distribution. Pure.

export function trimmed<Line extends { counts: number[] }>(
  bounds: number[],
  series: Line[],
): { bounds: number[]; series: Line[] } {
  const isUsed = bounds.map((_, place) => series.some((one) => (one.counts[place] ?? 0) > 0));
  const [first, last] = [isUsed.indexOf(true), isUsed.lastIndexOf(true)];
  if (first < 0) return { bounds: [], series: series.map((one) => ({ ...one, counts: [] })) };
  return {
    bounds: bounds.slice(first, last + 1),
    series: series.map((one) => ({ ...one, counts: one.counts.slice(first, last + 1) })),
  };
}
