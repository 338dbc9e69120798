import { describe, expect, it } from 'vitest';
import { dropLevel } from '../src/frames/drop_levels';
import { versionRows } from '../src/frames/version_rows';
import { sharesOver } from '../src/overview/shares';
import { trimmed } from '../src/breakdown/trimmed';
import { compareVersions } from '../src/versions/version_order';

describe('frames', () => {
  it('have the drop levels of Matrix', () => {
    const levels = [0, 2, 3, 8, 9, 23, 24, 41, 42, 900].map(dropLevel);
    expect(levels).toEqual([
      'best',
      'best',
      'normal',
      'normal',
      'middle',
      'middle',
      'high',
      'high',
      'frozen',
      'frozen',
    ]);
    expect(dropLevel(null)).toBe('');
  });

  it('of each version add up to one, the newest first', () => {
    const series = [
      { keys: ['1.9'], counts: [1, 1, 2] },
      { keys: ['1.10'], counts: [0, 30, 10] },
      { keys: ['1.8'], counts: [0, 0, 0] },
    ];
    expect(versionRows({ bounds: [8, 16], series })).toEqual({
      rows: ['1.10', '1.9', '1.8'],
      columns: ['≤ 8 ms', '≤ 16 ms', '> 16 ms'],
      values: [
        [0, 0.75, 0.25],
        [0.25, 0.25, 0.5],
        [0, 0, 0],
      ],
    });
  });
});

describe('a distribution', () => {
  it('loses its empty ends, not its empty middle', () => {
    const cut = trimmed(
      [1, 2, 3, 4, 5],
      [
        { label: 'a', counts: [0, 1, 0, 0, 0] },
        { label: 'b', counts: [0, 0, 0, 2, 0] },
      ],
    );
    expect(cut.bounds).toEqual([2, 3, 4]);
    expect(cut.series.map((one) => one.counts)).toEqual([
      [1, 0, 0],
      [0, 0, 2],
    ]);
    expect(trimmed([1, 2], [{ label: 'a', counts: [0, 0] }]).bounds).toEqual([]);
  });
});

describe('shares over time', () => {
  const lines = [
    { label: '1.9', values: [6, null] },
    { label: '1.10', values: [2, 8] },
    { label: '1.2', values: [2, 2] },
  ];

  it('are relative to the total at each time, with the rest as one line', () => {
    expect(sharesOver(lines, 2, compareVersions)).toEqual([
      { label: '1.10', values: [0.2, 0.8] },
      { label: '1.9', values: [0.6, 0] },
      { label: '1.2', values: [0.2, 0.2] },
    ]);
  });

  it('are missing without data', () => {
    expect(sharesOver([{ label: 'a', values: [null, 1] }], 5, compareVersions)).toEqual([
      { label: 'a', values: [null, 1] },
    ]);
    expect(sharesOver([], 5, compareVersions)).toEqual([]);
  });
});
