// The spans that ran during a jank. Pure.

import { micros, type TimedSpan } from '../traces/waterfall_layout';

interface Stall {
  start: string;
  duration_ms: number;
}

/** The longest span of each trace that overlaps a stall. The traces with the longest spans come first. */
export function overlapping<S extends TimedSpan & { trace_id: string }>(spans: S[], stall: Stall): S[] {
  const from = micros(stall.start);
  const to = from + stall.duration_ms * 1000;
  const during = spans.filter((span) => micros(span.start) < to && micros(span.start) + span.duration_us > from);
  const longest = during.toSorted((a, b) => b.duration_us - a.duration_us);
  return [...new Map(longest.toReversed().map((span) => [span.trace_id, span])).values()].toSorted(
    (a, b) => b.duration_us - a.duration_us,
  );
}
