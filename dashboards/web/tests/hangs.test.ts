import { expect, test } from 'vitest';
import { LENGTHS, lengthOf } from '../src/hangs/lengths';
import { RATES, evidenceOf, rateOf, type Counts } from '../src/hangs/numbers';
import { stepLabel, strategyLabel } from '../src/jank/words';
import { ratesOver } from '../src/jank/rates';

const counts = (wanted: Partial<Counts>): Counts => ({
  hangs: 0,
  installsWithHang: 0,
  kills: 0,
  sessionsWithKill: 0,
  installsWithKill: 0,
  hours: 100,
  installs: 100,
  sessions: 200,
  ...wanted,
});
const rate = (id: string) => RATES.find((one) => one.id === id)!;

test('a length includes all longer steps', () => {
  expect(lengthOf(new URLSearchParams()).where).toEqual({ duration: ['500ms_2s', '2s_5s', 'over_5s'] });
  expect(lengthOf(new URLSearchParams('hangs=severe')).where).toEqual({ duration: ['2s_5s', 'over_5s'] });
  expect(lengthOf(new URLSearchParams('hangs=micro')).where).toEqual({
    duration: ['250ms_500ms', '500ms_2s', '2s_5s', 'over_5s'],
  });
  expect(lengthOf(new URLSearchParams('hangs=nothing'))).toBe(LENGTHS[0]);
  expect(stepLabel('over_5s')).toBe('5 s or longer (ANR)');
  expect(strategyLabel('5x300ms')).toBe('5 × over 300 ms');
  expect(strategyLabel('1x2000ms')).toBe('1 × over 2 s');
  expect(strategyLabel('')).toBe('(none)');
});

test('rates divide hangs by hours of use, installs by installs in use, and killed sessions by sessions', () => {
  const some = counts({ hangs: 30, installsWithHang: 20, sessionsWithKill: 4, installsWithKill: 3 });
  expect(RATES.map((one) => rateOf(one.rate(some)))).toEqual([0.3, 0.2, 0.02]);
  expect(rateOf(rate('per_hour').rate(counts({ hours: 0 })))).toBeNull();
});

test('a change of a rate needs enough installs, and is tested by affected installs', () => {
  const many = counts({ hangs: 400, installsWithHang: 80 });
  const few = counts({ hangs: 40, installsWithHang: 30 });
  expect(evidenceOf(rate('per_hour'), { now: many })).toEqual({});
  expect(evidenceOf(rate('per_hour'), { now: many, base: few })).toEqual({ few: false, significant: true });
  expect(evidenceOf(rate('per_hour'), { now: few, base: few })).toEqual({ few: false, significant: false });
  const next = counts({ hangs: 9, installsWithHang: 7 });
  expect(evidenceOf(rate('per_hour'), { now: next, base: next }).few).toBe(true);
  expect(evidenceOf(rate('affected'), { now: many, base: counts({ installs: 0 }) }).few).toBe(true);
});

test('a rate over time sums the use of shorter steps', () => {
  const use = { times: [0, 10, 20, 30], values: [1, 3, null, 0] };
  expect(ratesOver([0, 20], [8, 5], use)).toEqual([2, null]);
  expect(ratesOver([0, 10, 20], [8, null, 1], { times: [0, 10, 20], values: [4, 2, 0] })).toEqual([2, 0, null]);
});
