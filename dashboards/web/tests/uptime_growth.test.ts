import { expect, test } from 'vitest';
import { canLeak, growth, UPTIMES } from '../src/resources/uptime_growth';

const points = (values: (number | null)[], count = 100, installs = 10) =>
  values.map((value, index) => ({ uptime: UPTIMES[index]!, value, count, installs }));

test('a rise from bucket to bucket is a leak', () => {
  expect(growth(points([100, 120, 150, 190, 260]))).toEqual({
    rise: 1.6,
    from: 'under_1m',
    to: 'over_1h',
    isLeak: true,
  });
});

test('a level line is not a leak, nor is one that falls again', () => {
  expect(growth(points([100, 101, 102, 101, 103]))?.isLeak).toBe(false);
  expect(growth(points([100, 200, 120, 130, 140]))?.isLeak).toBe(false);
});

test('buckets may come in any order and be missing', () => {
  expect(growth(points([100, null, 140, null, 180]).toReversed())?.isLeak).toBe(true);
});

test('few samples, installs or buckets are not a leak', () => {
  expect(growth(points([100, 200, 300], 100, 2))).toBeNull();
  expect(growth(points([100, 200, 300], 5))).toBeNull();
  expect(growth(points([100, 200]))?.isLeak).toBe(false);
});

test('only resources can leak', () => {
  expect(['memory_used_bytes', 'threads', 'open_files'].every(canLeak)).toBe(true);
  expect(['fps', 'battery_percent', 'disk_free_bytes', 'cpu_percent'].some(canLeak)).toBe(false);
});
