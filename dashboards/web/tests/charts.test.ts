import { describe, expect, it } from 'vitest';
import { ticksTo } from '../src/components/axis_ticks';
import { colourOf, dashOf } from '../src/components/series_style';
import { format, type Unit } from '../src/format/units';
import { mainColumns } from '../src/components/narrow_columns';
import { versionColour } from '../src/versions/version_colours';

const labels = (most: number, unit: Unit) => ticksTo(most, unit).map((tick) => format(tick, unit));

describe('ticks', () => {
  it('are round in the displayed unit', () => {
    expect(labels(1_000_000, 'ms')).toEqual(['0 ms', '5 min', '10 min', '15 min', '20 min']);
    expect(labels(250_000, 'ms')).toEqual(['0 ms', '2 min', '4 min', '6 min']);
    expect(labels(130_000, 'ms')).toEqual(['0 ms', '1 min', '2 min', '3 min']);
    expect(labels(42_000, 'ms')).toEqual(['0 ms', '15 s', '30 s', '45 s']);
    expect(labels(850_000, 'us')).toEqual(['0 ms', '250 ms', '500 ms', '750 ms', '1 s']);
    expect(labels(90_000_000, 'ms')).toEqual(['0 ms', '12 h', '24 h', '36 h']);
    expect(labels(0.046, 'share')).toEqual(['0 %', '2 %', '4 %', '6 %']);
    expect(labels(3, 'count')).toEqual(['0', '1', '2', '3']);
    expect(labels(123_456, 'count')).toEqual(['0', '50 k', '100 k', '150 k']);
  });

  it('have at most three digits', () => {
    for (const unit of ['ms', 'us', 's', 'bytes', 'share', 'count', 'per_hour'])
      for (let most = 0.00013; most < 1e11; most *= 1.7)
        for (const text of labels(most, unit).slice(1, 4))
          expect(text.replace(/[^0-9]/g, '').replace(/^0+|0+$/g, '').length, `${most} ${unit}: ${text}`).toBeLessThan(
            4,
          );
  });

  it('reach the largest value in few steps', () => {
    for (const most of [1, 7, 99, 61_000, 3_599_999, 1e8]) {
      const ticks = ticksTo(most, 'ms');
      expect(ticks.at(-1)).toBeGreaterThanOrEqual(most);
      expect(ticks.length).toBeLessThan(7);
    }
    expect(ticksTo(0)).toEqual([0, 1]);
  });
});

describe('series', () => {
  it('have the colour of their version in every chart', () => {
    expect(versionColour('4.12.0')).toBe(versionColour('4.12.0'));
    const colours = ['4.10.0', '4.11.0', '4.11.1', '4.12.0', '4.13.0'].map(versionColour);
    expect(new Set(colours).size).toBe(5);
    for (const name of ['nightly', '', '1', 'v2.0-beta.1', '2026.11.3'])
      expect(versionColour(name), name).toBeGreaterThanOrEqual(0);
    const chart = { label: '4.11.0', colour: versionColour('4.11.0') };
    expect(colourOf(chart, 0)).toBe(colourOf(chart, 3));
  });

  it('differ by their lines, not by colour alone', () => {
    expect(new Set(Array.from({ length: 8 }, (_, place) => dashOf(place).join())).size).toBe(8);
  });
});

describe('narrow tables', () => {
  const column = (id: string, more: object = {}) => ({ id, label: id, ...more });

  it('keep the first column and the main number', () => {
    const columns = [column('name'), column('kind'), column('count', { unit: 'count' }), column('p95', { unit: 'ms' })];
    const ids = (sortedBy?: string) => mainColumns(columns, sortedBy).map((one) => one.id);
    expect(ids()).toEqual(['name', 'count']);
    expect(ids('p95')).toEqual(['name', 'p95']);
    expect(mainColumns([...columns, column('change', { unit: 'share' })]).map((one) => one.id)).toEqual([
      'name',
      'change',
    ]);
    expect(mainColumns([column('a'), column(''), column('b')]).map((one) => one.id)).toEqual(['a', 'b']);
    expect(mainColumns([column('a'), column('b')]).length).toBe(2);
  });
});
