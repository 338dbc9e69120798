import { expect, test } from 'vitest';
import { inOrder, kindOf, measureOf } from '../src/app_starts/kinds';
import { longestPhase, tracesOf, type AppStart } from '../src/app_starts/single_starts';

const START: AppStart = {
  start: '2026-11-20T12:00:00Z',
  duration_ms: 1500,
  kind: 'cold',
  page: 'Feed',
  app_version: '4.12.0',
  os_name: 'android',
  os_version: '14',
  device_model: 'Pixel 8',
  device_class: 'high',
  install_id: '5c0c7e0e-6c6b-4a3e-8a0e-0f6f8d3b2a11',
  session_id: '7a97aa31-e7a8-48d4-9aa7-483de5eeb4dc',
  phases: [
    { name: 'di', duration_ms: 300 },
    { name: 'first_frame', duration_ms: 1200 },
  ],
};

test('unknown kinds and measures in the address fall back to cold starts and p75', () => {
  expect(kindOf(new URLSearchParams('kind=hot')).slow).toBe('1.5 s');
  expect(kindOf(new URLSearchParams('kind=lukewarm')).id).toBe('cold');
  expect(measureOf(new URLSearchParams('measure=slow')).name).toBe('slow_start_share');
  expect(measureOf(new URLSearchParams()).name).toBe('p75_ms');
});

test('kinds come in order, and unknown kinds last', () => {
  const rows = ['other', 'hot', 'cold', 'warm'].map((kind) => ({ keys: [kind] }));
  expect(inOrder(rows).map(({ keys }) => keys[0])).toEqual(['cold', 'warm', 'hot', 'other']);
});

test('a start links to the spans of its session at that time', () => {
  const address = new URL(tracesOf('shop', START), 'http://unjank');
  expect(address.pathname).toBe('/traces');
  expect(Object.fromEntries(address.searchParams)).toEqual({
    project: 'shop',
    from: '2026-11-20T11:59:59Z',
    to: '2026-11-20T12:00:02Z',
    session_id: START.session_id,
    order: 'latest',
  });
});

test('the longest phase of a start is named, if it has phases', () => {
  expect(longestPhase(START)?.name).toBe('first_frame');
  expect(longestPhase({ ...START, phases: [] })).toBeUndefined();
});
