// The time axis of a session: follows new events, and has ticks. Times are microseconds since the epoch. Pure.

import { within, type View } from '../components/zoom';
import { clockMillis, clockSeconds } from '../format/times';

/** The view after the time axis grew. A view that reached the end stays at the end. */
export function followed(before: View, view: View | null, whole: View): View | null {
  if (!view || view.to < before.to) return view;
  return within(whole, whole.to - (view.to - view.from), whole.to);
}

const SECOND = 1e6;
const STEPS = [
  ...[1, 2, 5, 10, 20, 50, 100, 200, 500].map((ms) => ms * 1000),
  ...[1, 2, 5, 10, 15, 30].map((seconds) => seconds * SECOND),
  ...[1, 2, 5, 10, 15, 30].map((minutes) => minutes * 60 * SECOND),
  ...[1, 2, 3, 6, 12, 24].map((hours) => hours * 3600 * SECOND),
];

/** Ticks of the clock in a view, at most about `most`. */
export function marks({ from, to }: View, most: number): { at: number; label: string }[] {
  const step = STEPS.find((one) => (to - from) / one <= Math.max(1, most)) ?? STEPS.at(-1)!;
  const found = [];
  for (let at = Math.ceil(from / step) * step; at <= to && found.length < 100; at += step) {
    found.push({ at, label: clock(at, step < SECOND) });
  }
  return found;
}

/** The time of day, with milliseconds if `fine`. */
export function clock(at: number, fine = false): string {
  return fine ? clockMillis(at / 1000) : clockSeconds(at / 1000);
}
