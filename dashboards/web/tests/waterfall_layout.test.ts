import { describe, expect, test } from 'vitest';
import { asTree, layOut, micros, neighbour, ticks, type TimedSpan } from '../src/traces/waterfall_layout';

const BASE = '2026-11-21T20:00:00.';

function span(id: string, start: number, duration: number, more: Partial<TimedSpan> = {}): TimedSpan {
  const time = `${BASE}${String(start).padStart(6, '0')}Z`;
  return { span_id: id, start: time, duration_us: duration, thread: 'main', on_main_thread: true, ...more };
}

const WORKER = { thread: 'worker', on_main_thread: false };

describe('the waterfall', () => {
  test('keeps the microseconds of a time', () => {
    expect(micros('2026-11-21T20:00:00.000123Z') - micros('2026-11-21T20:00:00Z')).toBe(123);
    expect(micros('2026-11-21T20:00:00.1765Z') % 1e6).toBe(176500);
  });

  test('puts nested spans below what they ran in, and others beside', () => {
    const { bars, rows } = layOut([
      span('a', 0, 100),
      span('b', 10, 30, { parent_span_id: 'a' }),
      span('c', 50, 30, { parent_span_id: 'a' }),
      span('d', 20, 10, { parent_span_id: 'b' }),
    ]);
    const row = Object.fromEntries(bars.map((bar) => [bar.span.span_id, bar.row]));
    expect(row).toEqual({ a: 1, b: 2, c: 2, d: 3 });
    expect(rows).toBe(4);
  });

  test('gives each thread a lane, the main thread first, though another began before', () => {
    const { lanes } = layOut([span('w', 0, 50, WORKER), span('m', 10, 50), span('w2', 20, 50, WORKER)]);
    expect(lanes.map(({ thread, row, rows, busyUs }) => ({ thread, row, rows, busyUs }))).toEqual([
      { thread: 'main', row: 0, rows: 1, busyUs: 50 },
      { thread: 'worker', row: 2, rows: 2, busyUs: 70 },
    ]);
  });

  test('counts as self what no child on the same thread covers', () => {
    const { bars } = layOut([
      span('a', 0, 100),
      span('b', 10, 30, { parent_span_id: 'a' }),
      span('c', 30, 30, { parent_span_id: 'a' }),
      span('d', 0, 100, { parent_span_id: 'a', ...WORKER }),
    ]);
    expect(bars.find((bar) => bar.span.span_id === 'a')?.selfUs).toBe(50);
  });

  test('is not led around a circle of parents', () => {
    const { bars } = layOut([
      span('a', 0, 10, { parent_span_id: 'b' }),
      span('b', 5, 10, { parent_span_id: 'a' }),
      span('c', 5, 1, { parent_span_id: 'c' }),
    ]);
    expect(asTree(bars)).toHaveLength(3);
  });

  test('walks to the caller, the called and the next', () => {
    const { bars } = layOut([span('a', 0, 100), span('b', 10, 30, { parent_span_id: 'a' }), span('c', 50, 10)]);
    const [a, b, c] = bars;
    expect(neighbour(bars, b!, 'ArrowUp')).toBe(a);
    expect(neighbour(bars, a!, 'ArrowDown')).toBe(b);
    expect(neighbour(bars, b!, 'ArrowRight')).toBe(c);
    expect(neighbour(bars, a!, 'ArrowLeft')).toBeUndefined();
  });

  test('lays out thousands of spans at once', () => {
    const many = Array.from({ length: 20_000 }, (_, index) => span(String(index), index * 10, 25));
    expect(layOut(many).rows).toBe(4);
  });

  test('marks round steps', () => {
    expect(ticks(0, 1000, 5)).toEqual([0, 200, 400, 600, 800, 1000]);
    expect(ticks(130, 260, 4)).toEqual([150, 200, 250]);
  });
});
