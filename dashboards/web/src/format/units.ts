// Formats numbers in the units of the API. Pure.

export type Unit =
  'us' | 'ms' | 's' | 'bytes' | 'share' | 'percent' | 'count' | 'per_hour' | 'per_minute' | 'fps' | (string & {});

const NONE = '–';

/** The text of a value in its unit. A missing value is a dash. */
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
      // The digits of a share below 0.01 % have no meaning.
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

/** The size of a change without its sign, such as `12 %` or `0.54 %`. Shows two digits, because further digits have no meaning. */
export function changeSize(relative: number): string {
  if (!Number.isFinite(relative)) return NONE;
  return `${digits(Number((Math.abs(relative) * 100).toPrecision(2)))} %`;
}

/** `3.2 ×`: how many times as much. */
export function times(ratio: number): string {
  return `${digits(ratio, 2)} ×`;
}

/** A p-value. Very small values are shown as a bound, because their digits have no meaning. */
export function probability(p: number | null | undefined): string {
  if (p === null || p === undefined) return NONE;
  return p < 0.001 ? '< 0.001' : String(Number(p.toPrecision(2)));
}

/** A number without the digits that floating point adds: 0.1 % is 0.001. */
export function tidy(value: number): number {
  return Number(value.toPrecision(12));
}

/** A number for an input field, without an exponent and with at most `places` decimals. */
export function decimal(value: number, places: number): string {
  return value.toFixed(places).replace(/\.?0+$/, '');
}

/** A whole number with thousands separators: `36,500`. */
export function grouped(value: number): string {
  return value.toLocaleString('en-US');
}

/** `100 spans, 3 requests, and 1 jank`. */
export function listed(parts: string[]): string {
  return new Intl.ListFormat('en').format(parts);
}

/** Three significant digits, no exponent, no trailing zeros. */
function digits(value: number, significant = 3): string {
  if (value === 0) return '0';
  if (Math.abs(value) >= 10 ** significant) return grouped(Math.round(value));
  const rounded = Number(value.toPrecision(significant));
  return Math.abs(rounded) >= 1000 ? grouped(rounded) : String(rounded);
}

export { ago, dateTime, exactTime, fromMicros } from './times';
