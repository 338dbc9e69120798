// Formats times in the chosen time zone. No other module formats times.

import { zone, zonedTime } from './zone.svelte';

const FORMATS = {
  date: { day: 'numeric', month: 'short', year: 'numeric' },
  dateTime: { dateStyle: 'medium', timeStyle: 'short' },
  dateTimeSeconds: { dateStyle: 'medium', timeStyle: 'medium' },
  day: { day: 'numeric', month: 'short' },
  exact: { dateStyle: 'full', timeStyle: 'long' },
  clock: { hour: '2-digit', minute: '2-digit' },
  clockSeconds: { hour: '2-digit', minute: '2-digit', second: '2-digit' },
  clockFine: { hour: '2-digit', minute: '2-digit', second: '2-digit', fractionalSecondDigits: 3 },
  short: { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit' },
  shortSeconds: { day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit', second: '2-digit' },
} satisfies Record<string, Intl.DateTimeFormatOptions>;

type Time = Date | number | string;
const date = (at: Time) => (at instanceof Date ? at : new Date(at));

const made = new Map<string, Intl.DateTimeFormat>();

function formatted(at: Time, kind: keyof typeof FORMATS, timeZone = zone.name): string {
  const key = `${kind} ${timeZone}`;
  let format = made.get(key);
  if (!format) made.set(key, (format = new Intl.DateTimeFormat('en-GB', { ...FORMATS[kind], timeZone })));
  return format.format(date(at));
}

/** `21 Nov 2026, 14:05`. */
export const dateTime = (at: Time) => formatted(at, 'dateTime');
/** `21 Nov 2026, 14:05:09`. */
export const dateTimeSeconds = (at: Time) => formatted(at, 'dateTimeSeconds');
/** `Saturday, 21 November 2026 at 14:05:09 UTC`. */
export const exactTime = (at: Time) => formatted(at, 'exact');
/** `21 Nov, 14:05`. */
export const shortTime = (at: Time) => formatted(at, 'short');
/** `21 Nov, 14:05:09`. */
export const shortTimeSeconds = (at: Time) => formatted(at, 'shortSeconds');
/** `21 Nov 2026`. */
export const fullDate = (at: Time) => formatted(at, 'date');
/** `21 Nov`. */
export const dayOf = (at: Time) => formatted(at, 'day');
/** `21 Nov 2026`, of a day in UTC. */
export const utcDate = (at: Time) => formatted(at, 'date', 'UTC');
/** `21 Nov`, of a day in the notation of the API, such as `2026-11-21`. Returns other texts unchanged. */
export const dayName = (day: string) => (Number.isNaN(Date.parse(day)) ? day : formatted(day, 'day', 'UTC'));
/** `14:05`. */
export const clockOf = (at: Time) => formatted(at, 'clock');
/** `14:05:09`. */
export const clockSeconds = (at: Time) => formatted(at, 'clockSeconds');
/** `14:05:09.123`. */
export const clockMillis = (at: Time) => formatted(at, 'clockFine');

/** Formats an API timestamp, in microseconds or as a text, for a cell of a file. */
export function timeInFile(at: number | string | null | undefined): string {
  if (at === null || at === undefined || at === '') return '';
  return zonedTime(typeof at === 'number' ? fromMicros(at) : new Date(at));
}

/** `2026-11-21T14:05:09Z`, for addresses and commands. */
export function wholeSeconds(at: Date): string {
  return at.toISOString().replace(/\.\d+Z$/, 'Z');
}

/** The day in UTC, such as `2026-11-21`, in the notation of the API. */
export function utcDay(at: Time): string {
  return date(at).toISOString().slice(0, 10);
}

const DAY_MS = 86_400_000;

/** `20 Nov – 26 Nov` for whole UTC days, and `21 Nov, 14:00 – 22 Nov, 09:00` for other periods. The end is exclusive. */
export function period(from: Time, to: Time): string {
  const [start, end] = [date(from), date(to)];
  const isWhole = start.getTime() % DAY_MS === 0 && end.getTime() % DAY_MS === 0;
  if (!isWhole) return `${shortTime(start)} – ${shortTime(end)}`;
  const [first, last] = [formatted(start, 'day', 'UTC'), formatted(end.getTime() - 1, 'day', 'UTC')];
  const days = first === last ? first : `${first} – ${last}`;
  return zone.name === 'UTC' ? days : `${days} (UTC)`;
}

const AGES: [Intl.RelativeTimeFormatUnit, number][] = [
  ['day', 86_400],
  ['hour', 3_600],
  ['minute', 60],
];

/** `5 minutes ago`, `in 3 days`. */
export function ago(at: Date, now: Date): string {
  const seconds = (at.getTime() - now.getTime()) / 1000;
  const relative = new Intl.RelativeTimeFormat('en', { numeric: 'auto' });
  for (const [unit, length] of AGES) {
    if (Math.abs(seconds) >= length) return relative.format(Math.round(seconds / length), unit);
  }
  return 'just now';
}

/** The API counts microseconds. */
export function fromMicros(micros: number): Date {
  return new Date(micros / 1000);
}
