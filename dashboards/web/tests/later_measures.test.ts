import { describe, expect, it } from 'vitest';
import type { Measure, TableAnswer } from '../src/api/query';
import { withLater } from '../src/breakdown/later_measures';

const COUNT: Measure = { name: 'count', unit: 'count', better: 'lower' };
const INSTALLS: Measure = { name: 'installs', unit: 'count', better: 'lower' };
const answer = (measures: Measure[], rows: [string, number[]][]) =>
  ({ measures, rows: rows.map(([key, values]) => ({ keys: [key], values })) }) as unknown as TableAnswer;
const values = ({ rows }: TableAnswer) => rows.map((row) => row.values);

describe('measures of a second answer', () => {
  const first = answer(
    [COUNT],
    [
      ['a', [30]],
      ['b', [20]],
      ['new', [10]],
    ],
  );
  /** In another order, and with the measure that it is sorted by. */
  const second = answer(
    [INSTALLS, COUNT],
    [
      ['b', [2, 20]],
      ['a', [3, 31]],
    ],
  );

  it('are added to the rows with the same keys', () => {
    const whole = withLater(first, { data: second, busy: false }, [INSTALLS]);
    expect(whole.measures).toEqual([COUNT, INSTALLS]);
    expect(values(whole)).toEqual([
      [30, 3],
      [20, 2],
      [10, null],
    ]);
    expect(values(first)).toEqual([[30], [20], [10]]);
  });

  it('have their columns before the answer arrives, without numbers of other filters', () => {
    for (const later of [
      { data: undefined, busy: true },
      { data: second, busy: true },
      { data: null, busy: false },
    ]) {
      const whole = withLater(first, later, [INSTALLS]);
      expect(whole.measures).toEqual([COUNT, INSTALLS]);
      expect(values(whole)).toEqual([
        [30, null],
        [20, null],
        [10, null],
      ]);
    }
  });

  it('leave an answer as it is that has them', () => {
    expect(withLater(second, { data: undefined, busy: true }, [INSTALLS])).toBe(second);
  });
});
