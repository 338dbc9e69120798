// A distribution by version as rows of shares, so that versions of any size are comparable. Pure.

import { compareVersions } from '../versions/version_order';

interface Distribution {
  /** Upper bounds. */
  bounds: number[];
  series: { keys: string[]; counts: number[] }[];
}

/**
 * Returns a row per version, the newest first. Each row sums up to one. Values over the last bound, if there are any, have their own
 * column.
 */
export function versionRows({ bounds, series }: Distribution): {
  rows: string[];
  columns: string[];
  values: number[][];
} {
  const sorted = series.toSorted((a, b) => compareVersions(b.keys[0] ?? '', a.keys[0] ?? ''));
  const width = Math.max(0, ...series.map((one) => one.counts.length));
  const columns = Array.from({ length: width }, (_, place) =>
    bounds[place] === undefined ? `> ${bounds.at(-1)} ms` : `≤ ${bounds[place]} ms`,
  );
  const values = sorted.map(({ counts }) => {
    const all = counts.reduce((sum, count) => sum + count, 0);
    return columns.map((_, place) => (all > 0 ? (counts[place] ?? 0) / all : 0));
  });
  return { rows: sorted.map((one) => one.keys[0] || '(none)'), columns, values };
}
