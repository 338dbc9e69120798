// Readable names of code and metrics, and coarser histogram buckets. Pure.

/** A method without its package, and the package: `com.shop.Cart.pay(int)` → `Cart.pay(int)` in `com.shop`. */
export function splitName(name: string): { short: string; place: string } {
  const found = /^((?:[a-z_][\w]*\.)+)([A-Z$].*)$/.exec(name);
  return found ? { short: found[2]!, place: found[1]!.slice(0, -1) } : { short: name, place: '' };
}

/** The unit of a metric, from the suffix of its name in the protocol. */
export function metricUnit(name: string): string {
  if (/_bytes$/.test(name)) return 'bytes';
  if (/_percent$/.test(name)) return 'percent';
  if (/_share$/.test(name)) return 'share';
  if (/_ms$/.test(name)) return 'ms';
  if (/_us$/.test(name)) return 'us';
  return /^fps|_fps$/.test(name) ? 'fps' : 'count';
}

/** `memory_used_bytes` → `Memory used`. */
export function metricLabel(name: string): string {
  if (/^(fps|cpu)/.test(name)) return name.startsWith('fps') ? 'Frames per second' : 'CPU';
  const words = name.replace(/_(bytes|percent|share|ms|us)$/, '').replaceAll('_', ' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** Merges buckets into at most `most` buckets of equal width on a logarithmic scale. */
export function coarser(bounds: number[], series: number[][], most = 40): { bounds: number[]; series: number[][] } {
  const positive = bounds.filter((bound) => bound > 0);
  if (bounds.length <= most || positive.length < 2) return { bounds, series };
  const low = Math.log(positive[0]!);
  const step = (Math.log(positive.at(-1)!) - low) / most;
  const wide = Array.from({ length: most }, (_, index) => Math.exp(low + step * (index + 1)));
  const place = bounds.map((bound) =>
    bound <= 0 ? 0 : Math.max(0, Math.min(most - 1, Math.ceil((Math.log(bound) - low) / step - 1e-9) - 1)),
  );
  const merged = series.map((counts) => {
    const sums = wide.map(() => 0);
    counts.forEach((count, index) => (sums[place[index]!]! += count));
    return sums;
  });
  return { bounds: wide, series: merged };
}
