// How much data a comparison needs. Sample rates scale up counts, but not installs and samples. Pure.

import { valueOf, type TableAnswer, type TableRow } from '../api/query';

/** The minimum number of installs on each side: for percentiles and shares, and for the count of one jank. */
export const ENOUGH = { measured: 20, janks: 8 };

/** Samples that a percentile needs on each side: to show its change, and to rank its change. */
export const ENOUGH_SAMPLES = { shown: 30, ranked: 50 };

/** Whether a row has too few measurements on one side to judge a change. */
export function isFew(answer: TableAnswer, row: TableRow): boolean {
  const isBelow = (measure: string, least: number) =>
    (['values', 'base'] as const).some((side) => (valueOf(answer, row, measure, side) ?? 0) < least);
  const measures = answer.measures.map((one) => one.name);
  const installs = answer.signal === 'janks' ? ENOUGH.janks : ENOUGH.measured;
  if (measures.includes('installs') && isBelow('installs', installs)) return true;
  return measures.includes('samples') && isBelow('samples', ENOUGH_SAMPLES.shown);
}
