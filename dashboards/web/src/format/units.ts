// Numbers as people read them, with the units of the API. Pure.

export type Unit =
  'us' | 'ms' | 's' | 'bytes' | 'share' | 'percent' | 'count' | 'per_hour' | 'per_minute' | 'fps' | (string & {});

const NONE = '–';

/** The text of a value in its unit; nothing measured is a dash. */
export function format(value: number | null | undefined, unit: Unit = 'count'): string {
  if (value === null || value === undefined || !Number.isFinite(value)) return NONE;
  switch (unit) {
    case 'us':
      return duration(value / 1000);
    case 'ms':
      return duration(value);
    case 's':
      return duration(value * 1000);
    case 'bytes':
      return bytes(value);
    case 'share':
      // Fewer than one of ten thousand is next to none, and its digits say nothing.
      return value > 0 && value < 1e-4 ? '<0.01 %' : `${digits(value * 100)} %`;
    case 'percent':
      return `${digits(value)} %`;
    case 'count':
      return count(value);
    case 'fps':
      return `${digits(value)} fps`;
    default:
      return digits(value);
  }
}

function duration(ms: number): string {
  const size = Math.abs(ms);
  if (size === 0) return '0 ms';
  if (size < 1) return `${digits(ms * 1000)} µs`;
  if (size < 1000) return `${digits(ms)} ms`;
  if (size < 60_000) return `${digits(ms / 1000)} s`;
  if (size < 3_600_000) return `${digits(ms / 60_000)} min`;
  if (size < 172_800_000) return `${digits(ms / 3_600_000)} h`;
  return `${digits(ms / 86_400_000)} d`;
}

function bytes(value: number): string {
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
  let size = value;
  let place = 0;
  while (Math.abs(size) >= 1000 && place < units.length - 1) {
    size /= 1000;
    place += 1;
  }
  return `${digits(size)} ${units[place]}`;
}

function count(value: number): string {
  const size = Math.abs(value);
  if (size >= 1e9) return `${digits(value / 1e9)} G`;
  if (size >= 1e6) return `${digits(value / 1e6)} M`;
  if (size >= 1e4) return `${digits(value / 1e3)} k`;
  return digits(value, 4);
}

/** Three significant digits, no exponent, no trailing zeros. */
function digits(value: number, significant = 3): string {
  if (value === 0) return '0';
  if (Math.abs(value) >= 10 ** significant) return Math.round(value).toLocaleString('en-US');
  return String(Number(value.toPrecision(significant)));
}

export interface Delta {
  /** `+12 %`. */
  text: string;
  verdict: 'better' | 'worse' | 'same' | 'changed';
  arrow: '▲' | '▼' | '■';
}

/** How far a value is from its base; changes below half a percent are none. `null` when one of them is missing. */
export function delta(
  value: number | null | undefined,
  base: number | null | undefined,
  better: 'lower' | 'higher' | 'none' = 'none',
): Delta | null {
  if (value === null || value === undefined || base === null || base === undefined) return null;
  if (value === base) return { text: '±0 %', verdict: 'same', arrow: '■' };
  const change = base === 0 ? Infinity : (value - base) / Math.abs(base);
  if (Math.abs(change) < 0.005) return { text: '±0 %', verdict: 'same', arrow: '■' };
  const up = value > base;
  const text = base === 0 ? 'new' : `${up ? '+' : '−'}${digits(Math.abs(change) * 100)} %`;
  const improved = better === 'none' ? null : (better === 'higher') === up;
  const verdict = improved === null ? 'changed' : improved ? 'better' : 'worse';
  return { text, verdict, arrow: up ? '▲' : '▼' };
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

export function dateTime(at: Date): string {
  return new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short' }).format(at);
}
