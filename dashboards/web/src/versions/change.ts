// Judges changes: the text, the verdict and the significance. Only this module decides. Pure.

import { changeSize, type Unit } from '../format/units';

export type Better = 'lower' | 'higher' | 'none';

/** Whether a change is significant. `null` if there is no test, `undefined` while the test is running. */
export type Significant = boolean | null | undefined;

/** The data behind a change. */
export interface Evidence {
  /** Whether either side has too few measurements. */
  few?: boolean;
  significant?: Significant;
}

export interface Change {
  /** Only `better` and `worse` have a colour. */
  verdict: 'better' | 'worse' | 'changed' | 'same' | 'unclear' | 'few';
  /** The change as text, such as `+12 %`. Empty if there are few samples. */
  text: string;
  /** The verdict in a word, such as `worse`. Empty if a word would add nothing. */
  word: string;
  arrow: '▲' | '▼' | '■' | '';
}

/** Percentiles come from buckets, so smaller changes are steps between buckets or noise. */
export const LEAST_CHANGE = 0.05;
/** Shares below this are shown as `<0.01 %`. A difference between two such shares is not a change. */
const NEXT_TO_NONE = 1e-4;
const NONE = '–';

/** The change of a value from its base. `null` if one of the two is missing. */
export function changeOf(
  value: number | null | undefined,
  base: number | null | undefined,
  better: Better = 'none',
  unit: Unit = 'count',
  evidence: Evidence = {},
): Change | null {
  const { few = false, significant } = evidence;
  if (!isNumber(value) || !isNumber(base)) return null;
  if (few) return { verdict: 'few', text: '', word: 'few samples', arrow: '' };
  const relative = relativeChange(value, base);
  const up = value > base;
  const arrow = value === base ? '■' : up ? '▲' : '▼';
  const text = base === 0 && value !== 0 ? 'from 0' : signed(relative);
  if (isNextToNone(value, base, unit)) return { verdict: 'same', text: '', word: 'close to zero', arrow: '■' };
  if (!isNoticeable(value, base, unit)) return { verdict: 'same', text, word: 'about the same', arrow: '■' };
  if (better === 'none') return { verdict: 'changed', text, word: '', arrow };
  if (significant !== true) {
    const running = 'significant' in evidence ? 'testing…' : '';
    const word = significant === false ? 'may be chance' : significant === null ? 'not tested' : running;
    return { verdict: 'unclear', text, word, arrow };
  }
  const verdict = (better === 'higher') === up ? 'better' : 'worse';
  return { verdict, text, word: verdict, arrow };
}

/** `+12 %, worse`, `few samples`. A dash without a change. */
export function changeText(change: Change | null): string {
  return change ? [change.text, change.word].filter(Boolean).join(', ') || NONE : NONE;
}

/** Whether a change is large enough to be tested. */
export function isNoticeable(value: number, base: number, unit: Unit = 'count'): boolean {
  return !isNextToNone(value, base, unit) && Math.abs(relativeChange(value, base)) >= LEAST_CHANGE;
}

function isNextToNone(value: number, base: number, unit: Unit): boolean {
  return unit === 'share' && value !== base && Math.max(Math.abs(value), Math.abs(base)) < NEXT_TO_NONE;
}

/** The relative change: 0.25 is a quarter more. Infinite if the base is 0. */
export function relativeChange(value: number, base: number): number {
  if (value === base) return 0;
  return base === 0 ? Infinity : (value - base) / Math.abs(base);
}

/** `+12 %`, `−3.1 %`, `±0 %`. */
export function signed(relative: number): string {
  if (Math.abs(relative) < 0.005) return '±0 %';
  return `${relative > 0 ? '+' : '−'}${changeSize(relative)}`;
}

function isNumber(value: number | null | undefined): value is number {
  return typeof value === 'number' && !Number.isNaN(value);
}
