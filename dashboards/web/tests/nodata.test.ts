import { expect, test } from 'vitest';
import { lastStep, periodWith, reasonFor, switchedOff, type Facts } from '../src/nodata/reason';
import { sourceOf } from '../src/nodata/sources';

const NOW = new Date('2026-11-23T12:00:00Z');
const facts: Facts = {
  lastOfProject: NOW,
  lastOfSignal: NOW,
  isInPeriod: false,
  isFiltered: false,
  switchedOff: '',
};

test('the reason for an empty page depends on what the project, the signal and the period have', () => {
  expect(reasonFor({ ...facts, lastOfProject: null, lastOfSignal: null })).toBe('empty_project');
  expect(reasonFor({ ...facts, lastOfSignal: null, isFiltered: true })).toBe('never_sent');
  expect(reasonFor({ ...facts, isFiltered: true })).toBe('other_period');
  expect(reasonFor({ ...facts, isInPeriod: true, isFiltered: true })).toBe('filtered');
  expect(reasonFor({ ...facts, isInPeriod: true })).toBe('other_choice');
});

test('the page offers the shortest usual period that includes the last data, otherwise a week', () => {
  const day = 86_400_000;
  const ago = (days: number) => new Date(NOW.getTime() - days * day);
  expect(periodWith(ago(0.5), day, NOW)).toEqual({ kind: 'relative', text: '24h' });
  expect(periodWith(ago(20), day, NOW)).toEqual({ kind: 'relative', text: '30d' });
  expect(periodWith(ago(200), 7 * day, NOW)).toEqual({ kind: 'absolute', from: ago(200), to: ago(193) });
});

test('the last bucket with a value tells when data last arrived', () => {
  const times = [1_790_000_000, 1_790_086_400, 1_790_172_800];
  expect(lastStep(times, [3, 1, 0])).toEqual(new Date(1_790_086_400_000));
  expect(lastStep(times, [null, 0, 0])).toBeNull();
  expect(lastStep([], [])).toBeNull();
});

test('the page names the key of the remote config that switches a signal off', () => {
  const base = (base: object, overrides: object[] = []) => ({ base, overrides });
  expect(switchedOff(base({ enabled: false }), 'janks')).toBe('enabled is false.');
  expect(switchedOff(base({ sampling: { session_rate: 0 } }), 'metrics')).toBe('sampling.session_rate is 0.');
  expect(switchedOff(base({ sampling: { session_rate: 0 } }), 'traffic')).toBe('');
  expect(switchedOff(base({ sampling: { janks: 0 } }), 'janks')).toBe('sampling.janks is 0.');
  expect(switchedOff(base({ sampling: { janks: 0 } }), 'spans')).toBe('');
  expect(switchedOff(base({}), 'recompositions')).toBe('sampling.recompositions is 0 by default.');
  expect(switchedOff(undefined, 'frame_windows')).toBe('');
  expect(switchedOff(base({ tracing: { enabled: false } }), 'requests')).toBe('tracing.enabled is false.');
  const rare = { sampling: { spans: { default: 0, overrides: [{ name: 'cart*', rate: 1 }] } } };
  expect(switchedOff(base(rare), 'spans')).toBe('');
  const some = [{ when: { all: [] }, patch: { sampling: { recompositions: 0.1 } } }];
  expect(switchedOff(base({}, some), 'recompositions')).toBe('');
});

test('every signal that an app sends has an example call', () => {
  for (const signal of ['spans', 'janks', 'frame_windows', 'page_loads', 'page_requests', 'traffic'] as const)
    expect(sourceOf(signal).snippet).toContain('unjank::');
  for (const signal of ['metrics', 'app_starts', 'start_phases', 'recompositions'] as const)
    expect(sourceOf(signal).snippet).toContain('unjank::');
  expect(sourceOf('spans').snippet).not.toContain('// janks');
  expect(sourceOf('recompositions').snippet).not.toContain('end');
});
