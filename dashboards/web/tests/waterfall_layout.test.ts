import { describe, expect, test } from 'vitest';
import { asTree, labelPlace, layOut, micros, neighbour, ticks, type TimedSpan } from '../src/traces/waterfall_layout';

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

  test('puts nested spans below their parents, and others in the same row', () => {
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

  test('gives each thread a lane, the main thread first even if another one began earlier', () => {
    const { lanes } = layOut([span('w', 0, 50, WORKER), span('m', 10, 50), span('w2', 20, 50, WORKER)]);
    expect(lanes.map(({ thread, row, rows, busyUs }) => ({ thread, row, rows, busyUs }))).toEqual([
      { thread: 'main', row: 0, rows: 1, busyUs: 50 },
      { thread: 'worker', row: 2, rows: 2, busyUs: 70 },
    ]);
  });

  test('names the app of each lane if there are several', () => {
    const app = { app_id: 'com.example.shop' };
    const service = { app_id: 'payments', thread: 'main', on_main_thread: false };
    const { bars, lanes } = layOut([span('a', 0, 100, app), span('b', 10, 30, { parent_span_id: 'a', ...service })]);
    expect(lanes.map(({ app, row }) => [app, row])).toEqual([
      ['com.example.shop', 0],
      ['payments', 2],
    ]);
    // A callee in another app runs elsewhere, although its thread has the same name.
    expect(bars[0]?.selfUs).toBe(100);
    expect(layOut([span('a', 0, 100, app)]).lanes[0]?.app).toBe('');
  });

  test('counts time that no child on the same thread covers as self time', () => {
    const { bars } = layOut([
      span('a', 0, 100),
      span('b', 10, 30, { parent_span_id: 'a' }),
      span('c', 30, 30, { parent_span_id: 'a' }),
      span('d', 0, 100, { parent_span_id: 'a', ...WORKER }),
    ]);
    expect(bars.find((bar) => bar.span.span_id === 'a')?.selfUs).toBe(50);
  });

  test('survives a cycle of parents', () => {
    const { bars } = layOut([
      span('a', 0, 10, { parent_span_id: 'b' }),
      span('b', 5, 10, { parent_span_id: 'a' }),
      span('c', 5, 1, { parent_span_id: 'c' }),
    ]);
    expect(asTree(bars)).toHaveLength(3);
  });

  test('moves to the caller, the callee and the next span', () => {
    const { bars } = layOut([span('a', 0, 100), span('b', 10, 30, { parent_span_id: 'a' }), span('c', 50, 10)]);
    const [a, b, c] = bars;
    expect(neighbour(bars, b!, 'ArrowUp')).toBe(a);
    expect(neighbour(bars, a!, 'ArrowDown')).toBe(b);
    expect(neighbour(bars, b!, 'ArrowRight')).toBe(c);
    expect(neighbour(bars, a!, 'ArrowLeft')).toBeUndefined();
  });

  test('gives each span a row of its own on a narrow screen', () => {
    const spans = [
      span('a', 0, 100),
      span('b', 10, 30, { parent_span_id: 'a' }),
      span('c', 50, 30, { parent_span_id: 'a' }),
      span('w', 20, 10, WORKER),
    ];
    const { bars, rows } = layOut(spans, true);
    expect(Object.fromEntries(bars.map((bar) => [bar.span.span_id, bar.row]))).toEqual({ a: 1, b: 2, c: 3, w: 5 });
    expect(rows).toBe(6);
  });

  test('puts a name into its bar, otherwise into free space beside it', () => {
    const free = { left: 0, right: 400 };
    expect(labelPlace({ left: 10, right: 200 }, 80, free)).toEqual({ at: 15, room: 180, isInside: true });
    expect(labelPlace({ left: 10, right: 20 }, 80, free)).toMatchObject({ at: 25, isInside: false });
    expect(labelPlace({ left: 390, right: 398 }, 80, free)).toMatchObject({ at: 305, isInside: false });
    const between = { left: 10, right: 30 };
    expect(labelPlace({ left: 10, right: 20 }, 80, between)).toBeNull();
    expect(labelPlace({ left: 10, right: 60 }, 80, { left: 10, right: 70 })).toMatchObject({
      room: 40,
      isInside: true,
    });
  });

  test('lays out thousands of spans at once', () => {
    const many = Array.from({ length: 20_000 }, (_, index) => span(String(index), index * 10, 25));
    expect(layOut(many).rows).toBe(4);
  });

  test('has ticks at round steps', () => {
    expect(ticks(0, 1000, 5)).toEqual([0, 200, 400, 600, 800, 1000]);
    expect(ticks(130, 260, 4)).toEqual([150, 200, 250]);
  });
});
