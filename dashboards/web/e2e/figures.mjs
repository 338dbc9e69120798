// Compares numbers on pages with numbers from the raw tables. Formats numbers independently of the code of the pages.
import { check } from './reader.mjs';

const UNITS = {
  µs: 1e-3,
  ms: 1,
  s: 1000,
  min: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  B: 1,
  kB: 1e3,
  MB: 1e6,
  GB: 1e9,
  k: 1e3,
  M: 1e6,
  '%': 0.01,
};

/** `1.32 s` → 1.32 and 1000. */
function parts(text) {
  const [, number, unit = ''] = /^(-?\d[\d,]*(?:\.\d+)?)(?:\s+(\S+))?/.exec(text.trim()) ?? [];
  const found = { number: Number(number?.replaceAll(',', '')), unit: UNITS[unit] ?? 1 };
  check(Number.isFinite(found.number), `no number: ${text}`);
  return found;
}

/** `1.32 s` → 1320, `3.91 %` → 0.0391, `70.8 k` → 70800: milliseconds, bytes, shares, counts. */
export function read(text) {
  const { number, unit } = parts(text);
  return number * unit;
}

/** Checks that a text shows exactly this count, abbreviated like on the pages. */
export function count(text, value, what) {
  const [size, unit] = value >= 1e6 ? [value / 1e6, ' M'] : value >= 1e4 ? [value / 1e3, ' k'] : [value, ''];
  const wanted = `${Number(size.toPrecision(unit ? 3 : 4)).toLocaleString('en-US')}${unit}`;
  check(first(text) === wanted, `${what}: shown ${first(text)}, counted ${wanted} (${value})`);
}

/** Checks that a text shows a value to three digits. */
export function rounded(text, value, what) {
  const { number, unit } = parts(text);
  const wanted = Number((value / unit).toPrecision(3));
  check(Math.abs(number - wanted) <= wanted * 1e-6, `${what}: shown ${first(text)}, counted ${value}`);
}

/** Checks a percentile, with a tolerance for the error of the distribution and for rounding. */
export function about(text, value, what, within = 0.015) {
  const shown = read(text);
  check(Math.abs(shown - value) <= value * within, `${what}: shown ${first(text)}, computed ${value}`);
}

const first = (text) => text.trim().split('\n')[0].trim();
