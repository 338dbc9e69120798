import { describe, expect, it } from 'vitest';
import { theSorted } from '../src/components/sorting';
import { csv } from '../src/format/csv';
import { lineDiff, withContext } from '../src/format/line_diff';
import { ago, delta, format } from '../src/format/units';

describe('numbers', () => {
  it.each([
    [null, 'us', '–'],
    [0, 'us', '0 ms'],
    [412, 'us', '412 µs'],
    [41_250, 'us', '41.3 ms'],
    [61_000, 'ms', '1.02 min'],
    [0.0312, 'share', '3.12 %'],
    [1_234_567, 'bytes', '1.23 MB'],
    [999, 'count', '999'],
    [9_999, 'count', '9999'],
    [12_345, 'count', '12.3 k'],
    [59.94, 'fps', '59.9 fps'],
  ])('%s %s is %s', (value, unit, text) => expect(format(value, unit)).toBe(text));

  it('say whether a change is good', () => {
    expect(delta(120, 100, 'lower')).toEqual({ text: '+20 %', verdict: 'worse', arrow: '▲' });
    expect(delta(80, 100, 'lower')).toEqual({ text: '−20 %', verdict: 'better', arrow: '▼' });
    expect(delta(80, 100)?.verdict).toBe('changed');
    expect(delta(100.1, 100, 'lower')?.verdict).toBe('same');
    expect(delta(5, 0, 'lower')?.text).toBe('new');
    expect(delta(null, 100)).toBeNull();
  });

  it('say how long ago', () => {
    const now = new Date('2026-11-21T12:00:00Z');
    expect(ago(new Date('2026-11-21T11:55:00Z'), now)).toBe('5 minutes ago');
    expect(ago(new Date('2026-12-21T12:00:00Z'), now)).toBe('in 30 days');
  });
});

describe('tables', () => {
  it('are sorted with what is missing last', () => {
    const columns = [{ id: 'v', value: (row: number | null) => row }];
    expect(theSorted([2, null, 10, 1], columns, { column: 'v', descending: true })).toEqual([10, 2, 1, null]);
    expect(theSorted([2, null, 10, 1], columns, { column: 'v', descending: false })).toEqual([1, 2, 10, null]);
  });

  it('are files that no spreadsheet runs', () => {
    expect(
      csv([
        ['a', 'b'],
        ['=1+1', 'say "hi", you'],
        [-3, null],
      ]),
    ).toBe('a,b\r\n\'=1+1,"say ""hi"", you"\r\n-3,\r\n');
  });
});

describe('differences', () => {
  const signs = (before: string, after: string) =>
    lineDiff(before, after).map(({ kind, text }) => ({ same: ' ', added: '+', removed: '-' })[kind] + text);

  it('are line by line', () => {
    expect(signs('a\nb\nc', 'a\nx\nc\nd')).toEqual([' a', '-b', '+x', ' c', '+d']);
    expect(signs('', '')).toEqual([' ']);
  });

  it('leave out what is far from any change', () => {
    const before = Array.from({ length: 20 }, (_, index) => `line ${index}`).join('\n');
    const shown = withContext(lineDiff(before, before.replace('line 10', 'other')), 1);
    expect(shown.map((line) => line?.text ?? '…')).toEqual(['…', 'line 9', 'line 10', 'other', 'line 11', '…']);
  });
});
