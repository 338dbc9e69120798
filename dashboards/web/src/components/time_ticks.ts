// Ticks of a time axis: full hours of the chosen time zone, or days. Pure.

import { clockOf, dayOf } from '../format/times';
import { offsetMinutes } from '../format/zone.svelte';

const HOUR = 3600;
const DAY = 86_400;
const STEPS = [60, 300, 900, 1800, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR];
const DAYS = [1, 2, 3, 7, 14, 28, 56, 91, 182, 364];

export interface TimeTick {
  /** Seconds since the epoch. */
  at: number;
  label: string;
}

/** At most `most` ticks between two times, both in seconds since the epoch. */
export function timeTicks(from: number, to: number, most: number): TimeTick[] {
  const step = STEPS.find((one) => (to - from) / one < most);
  return step === undefined ? dayTicks(from, to, most) : clockTicks(from, to, step);
}

/** Hours count from midnight. The tick at midnight shows the day. */
function clockTicks(from: number, to: number, step: number): TimeTick[] {
  const offset = -offsetMinutes(new Date(from * 1000)) * 60;
  const ticks: TimeTick[] = [];
  for (let at = Math.ceil((from - offset) / step) * step + offset; at <= to; at += step) {
    const label = clockOf(at * 1000);
    ticks.push({ at, label: label === '00:00' ? dayOf(at * 1000) : label });
  }
  return ticks;
}

/** Days count from the first bucket, so that each tick is under a value. */
function dayTicks(from: number, to: number, most: number): TimeTick[] {
  const every = DAYS.find((one) => (to - from) / (one * DAY) < most) ?? Math.ceil((to - from) / DAY / most);
  const ticks: TimeTick[] = [];
  for (let at = from; at <= to; at += every * DAY) ticks.push({ at, label: dayOf(at * 1000) });
  return ticks;
}
