import { describe, expect, test } from 'vitest';
import {
  byPackage,
  chanceText,
  changeOfSpan,
  explains,
  moves,
  origin,
  perCall,
  verdict,
  type Inside,
  type InsideRow,
} from '../src/spans/inside';

/** Numbers of a function: self time per traced span, its part on the main thread, calls, and traced spans. */
const times = (self: number, onMain = 0, calls = 1, spans = 10) => ({
  calls: calls * spans,
  recorded: calls * spans,
  total_us: self * spans,
  self_us: self * spans,
  main_thread_us: onMain * spans,
  per_traced: { spans, calls, total_us: self, self_us: self, main_thread_us: onMain },
});
const row = (name: string, more: Partial<InsideRow>): InsideRow => ({
  name,
  package: 'shop',
  by_time: 0,
  base_traced: 10,
  ...times(0, 0, 0),
  ...more,
});
const data = (rows: InsideRow[]): Inside => ({
  spans: 200,
  traced: 10,
  total_us: 200 * 1000,
  base_spans: 200,
  base_traced: 10,
  rows,
});

describe('what ran inside a span, compared with another version', () => {
  test('is new or gone only if both versions have spans that would have recorded it', () => {
    const p = 0.001;
    expect(verdict(row('a', { ...times(5), base: times(4), p }))).toBe('');
    expect(verdict(row('a', { ...times(5), p }))).toBe('new');
    expect(verdict(row('a', { ...times(5), base_traced: 0, p }))).toBe('');
    expect(verdict(row('a', { ...times(0, 0, 0), base: times(4), p }))).toBe('gone');
    expect(verdict(row('a', { ...times(0, 0, 0, 0), base: times(4), p }))).toBe('');
  });

  test('is neither new nor gone if few installs were traced, or if it may be chance', () => {
    expect(verdict(row('a', times(5)))).toBe('');
    expect(verdict(row('a', { ...times(5), base_traced: 1, p: 0.2, p_main_thread: 0.2 }))).toBe('');
    expect(verdict(row('a', { ...times(5), p: 0.2, p_main_thread: 0.001 }))).toBe('new');
    expect(verdict(row('a', { ...times(0, 0, 0), base: times(4), p: 0.2 }))).toBe('');
    const packages = byPackage([row('a', { ...times(5), p: 0.2 }), row('b', { ...times(5), p: 0.001 })]);
    expect(packages.map(verdict)).toEqual(['new']);
    expect(byPackage([row('a', times(5)), row('b', times(5))]).map(verdict)).toEqual(['']);
  });

  test('is summed by package on both sides, and a package has as many traced spans as its rarest function', () => {
    const rows = [
      row('shop.Cart.add', { ...times(30, 10), base: times(20) }),
      row('shop.Cart.sum', { ...times(10, 0, 2, 4), base_traced: 3 }),
      row('GET /cart', { ...times(50), package: '' }),
    ];
    const found = byPackage(rows);
    expect(found.map((one) => [one.name, one.per_traced.self_us, one.per_traced.calls])).toEqual([
      ['GET /cart', 50, 1],
      ['shop', 40, 3],
    ]);
    expect(found[1]!.per_traced).toMatchObject({ spans: 4, main_thread_us: 10 });
    expect([found[1]!.base_traced, found[1]!.base!.per_traced.self_us]).toEqual([3, 20]);
  });

  test('has a time per call, and marks calls without a link', () => {
    expect(perCall(times(100, 0, 4))).toBe(25);
    expect(perCall(times(0, 0, 0))).toBeNull();
    expect(origin(row('a', { ...times(1), by_time: 1 }))).toBe('1 by time');
    expect(origin(row('a', { ...times(1), by_time: 10 }))).toBe('by time');
    expect(origin(row('a', times(1)))).toBe('');
  });

  test('is listed by the size of its change, significant changes first', () => {
    const found = moves(
      data([
        row('chance', { ...times(900), base: times(100), p: 0.4, p_main_thread: 1 }),
        row('certain', { ...times(300), base: times(100), p: 0.001, p_main_thread: 1 }),
        row('untraced', { ...times(900, 0, 1, 0), base: times(100), p: 0.001 }),
        row('same', { ...times(101), base: times(100), p: 0.9 }),
        row('new', { ...times(200), p: 0.0001, p_main_thread: 1 }),
      ]),
      8,
    );
    expect(found.map((one) => [one.row.name, one.change])).toEqual([
      ['certain', 200],
      ['new', 200],
      ['chance', 800],
    ]);
  });

  test('explains a part of the change of the span, unless both changed in opposite directions', () => {
    const span = (more: Partial<InsideRow>) => data([row('checkout', more), row('insert', times(9))]);
    expect(changeOfSpan(span({ ...times(900), base: times(200) }), 'checkout')).toBe(700);
    expect(changeOfSpan(span({ ...times(900, 0, 1, 0), base: times(200) }), 'checkout')).toBeNull();
    expect(changeOfSpan(span({ ...times(900) }), 'checkout')).toBeNull();
    expect(explains(258_000, 697_000)).toBe('258 ms of 697 ms');
    expect(explains(-258_000, -697_000)).toBe('258 ms of 697 ms');
    expect(explains(708_000, 697_000)).toBe('all 697 ms');
    expect(explains(-5000, 697_000)).toBe('');
    expect(explains(5000, null)).toBe('');
  });

  test('can move to the main thread without taking longer', () => {
    const [found] = moves(
      data([row('insert', { ...times(270, 270), base: times(275, 0), p: 0.8, p_main_thread: 1e-6 })]),
      8,
    );
    expect(found).toMatchObject({ change: 270, p: 1e-6, thread: 'to the main thread' });
    const [back] = moves(data([row('insert', { ...times(270, 0), base: times(275, 270), p: 0.8 })]), 8);
    expect(back).toMatchObject({ change: -270, p: null, thread: 'off the main thread' });
  });

  test('shows the p-value, or that too few installs were traced', () => {
    expect(chanceText(null)).toBe('few samples');
    expect(chanceText(0.0001)).toBe('p < 0.001');
    expect(chanceText(0.0042)).toBe('p = 0.0042');
    expect(chanceText(0.25)).toBe('may be chance, p = 0.25');
  });
});
