// The visible part of a time axis. Times are microseconds since the epoch or since the start of a trace. Pure.

export interface View {
  from: number;
  to: number;
}

/** A millisecond, because the clocks of devices are not more precise. */
export const SHORTEST_US = 1000;

/** The view from `from` to `to`, moved to fit within the whole. Returns `null` if the view is the whole. */
export function within(whole: View, from: number, to: number, shortest = SHORTEST_US): View | null {
  const length = Math.max(shortest, to - from);
  if (length >= whole.to - whole.from) return null;
  const start = Math.max(whole.from, Math.min(whole.to - length, from));
  return { from: start, to: start + length };
}

export function zoomed(
  whole: View,
  shown: View,
  factor: number,
  around = (shown.from + shown.to) / 2,
  shortest = SHORTEST_US,
): View | null {
  return within(whole, around - (around - shown.from) * factor, around + (shown.to - around) * factor, shortest);
}

/** Moves the view by a share of its length. */
export function moved(whole: View, shown: View, share: number, shortest = SHORTEST_US): View | null {
  const by = (shown.to - shown.from) * share;
  return within(whole, shown.from + by, shown.to + by, shortest);
}

/** The position of a time on a canvas, in pixels. */
export const place = (at: number, shown: View, width: number) => ((at - shown.from) / (shown.to - shown.from)) * width;
