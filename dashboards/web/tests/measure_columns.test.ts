import { describe, expect, it } from 'vitest';
import type { TableAnswer } from '../src/api/query';
import { asIs, measureColumns } from '../src/breakdown/measure_columns';
import { measureName } from '../src/format/measure_names';
import { bothVersions } from '../src/versions/both_versions';
import { readFilters } from '../src/navigation/filters';

const answer = {
  measures: [
    { name: 'p75_ms', unit: 'ms', better: 'lower' },
    { name: 'installs', unit: 'count', better: 'none' },
  ],
  rows: [
    { keys: ['a'], values: [20, 50], base: [10, 40] },
    { keys: ['b'], values: [20, 50], base: [10, 3] },
    { keys: ['c'], values: [20, 50], base: null },
  ],
} as unknown as TableAnswer;

describe('columns of measures', () => {
  it('mark rows with too few installs on a side', () => {
    const tests = { of: () => true };
    const [duration, installs] = measureColumns(answer, ['p75_ms', 'installs', 'unknown'], asIs, {}, tests);
    expect(answer.rows.map((row) => duration!.base?.(row))).toEqual([10, 10, undefined]);
    expect(answer.rows.map((row) => duration!.evidence?.(row))).toEqual([
      { few: false, significant: true },
      { few: true, significant: true },
      { few: true, significant: true },
    ]);
    expect(duration).toMatchObject({ label: 'p75', unit: 'ms', better: 'lower' });
    expect(installs!.base).toBeUndefined();
  });

  it('have readable names', () => {
    expect(['t1_p50_ms', 'total_p95_ms', 'p75_us', 'slow_share', 'some_thing'].map(measureName)).toEqual([
      'T1 p50',
      'Total p95',
      'p75',
      'Slow frames',
      'Some thing',
    ]);
  });
});

describe('charts of two versions', () => {
  it('show both versions of a comparison', () => {
    const read = (text: string) => bothVersions(readFilters(new URLSearchParams(text)));
    expect(read('app_version=2&base_app_version=1')).toEqual({ app_version: ['2', '1'] });
    expect(read('app_version=2')).toBeUndefined();
    expect(read('base_app_version=1')).toBeUndefined();
  });
});
