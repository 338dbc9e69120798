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

/** Merges buckets into at most `most` buckets of equal width. The scale is logarithmic, and mirrored below zero. */
export function coarser(bounds: number[], series: number[][], most = 40): { bounds: number[]; series: number[][] } {
  const sizes = bounds.filter((bound) => bound !== 0).map(Math.abs);
  if (bounds.length <= most || sizes.length < 2) return { bounds, series };
  // From -1 to 1, between the bounds nearest to zero, the scale is linear.
  const nearest = Math.min(...sizes);
  const scaled = (bound: number) => (bound === 0 ? 0 : Math.sign(bound) * (1 + Math.log(Math.abs(bound) / nearest)));
  const unscaled = (at: number) => nearest * (Math.abs(at) <= 1 ? at : Math.sign(at) * Math.exp(Math.abs(at) - 1));
  const low = scaled(bounds.find((bound) => bound !== 0)!);
  const step = (scaled(bounds.at(-1)!) - low) / most;
  const wide = Array.from({ length: most }, (_, index) => unscaled(low + step * (index + 1)));
  const place = bounds.map((bound) =>
    Math.max(0, Math.min(most - 1, Math.ceil((scaled(bound) - low) / step - 1e-9) - 1)),
  );
  const merged = series.map((counts) => {
    const sums = wide.map(() => 0);
    counts.forEach((count, index) => (sums[place[index]!]! += count));
    return sums;
  });
  return { bounds: wide, series: merged };
}
