import { describe, expect, test } from 'vitest';
import { byPackage, perSpan, verdict, type Inside } from '../src/spans/inside';

const times = (self_us: number, calls = 1, total_us = self_us) => ({ self_us, calls, total_us, main_thread_us: 0 });
const data: Inside = {
  spans: 2,
  total_us: 100,
  base_spans: 4,
  rows: [
    { name: 'shop.Cart.add', package: 'shop', ...times(30, 2, 90), base: times(20, 4) },
    { name: 'shop.Cart.sum', package: 'shop', ...times(10) },
    { name: 'GET /cart', package: '', ...times(0, 0), base: times(8) },
  ],
};

describe('what ran inside a span, beside another version', () => {
  test('is told per span, since not as many were looked into', () => {
    expect(perSpan(data, data.rows[0]!, 'self_us')).toEqual({ now: 15, base: 5 });
    expect(perSpan(data, data.rows[1]!, 'calls')).toEqual({ now: 0.5, base: 0 });
    expect(perSpan({ ...data, base_spans: undefined }, data.rows[0]!, 'self_us').base).toBeNull();
  });

  test('is new, gone or neither', () => {
    expect(data.rows.map((row) => verdict(data, row))).toEqual(['', 'new', 'gone']);
    expect(verdict({ ...data, base_spans: 0 }, data.rows[1]!)).toBe('');
  });

  test('is summed by package on both sides', () => {
    expect(byPackage(data.rows)).toEqual([
      { name: 'shop', package: 'shop', ...times(40, 3), base: times(20, 4) },
      { name: 'GET /cart', package: '', ...times(0, 0), base: times(8) },
    ]);
  });
});
