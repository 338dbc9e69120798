import { describe, expect, it } from 'vitest';
import type { TableAnswer } from '../src/api/query';
import { judge } from '../src/jank/group_changes';
import { changeOf, signed } from '../src/versions/change';
import { toTest } from '../src/versions/change_tests.svelte';
import { isFew } from '../src/versions/minimum_samples';
import { holm, rateP } from '../src/versions/rate_test';
import { classesIn, styledIn } from './class_names';

const COMPONENTS = import.meta.glob<string>('../src/**/*.svelte', { query: '?raw', import: 'default', eager: true });
const tested = { significant: true };

describe('a change', () => {
  it('is better or worse only if chance does not explain it', () => {
    expect(changeOf(120, 100, 'lower', 'ms', tested)).toEqual({
      verdict: 'worse',
      text: '+20 %',
      word: 'worse',
      arrow: '▲',
    });
    expect(changeOf(80, 100, 'lower', 'ms', tested)?.verdict).toBe('better');
    expect(changeOf(80, 100, 'higher', 'fps', tested)?.verdict).toBe('worse');
    expect(changeOf(120, 100, 'lower', 'ms', { significant: false })).toMatchObject({
      verdict: 'unclear',
      word: 'may be chance',
    });
    expect(changeOf(120, 100, 'lower', 'ms', { significant: null })?.word).toBe('not tested');
    expect(changeOf(120, 100, 'lower', 'ms')).toMatchObject({ verdict: 'unclear', word: '' });
    expect(changeOf(120, 100, 'lower', 'ms', { significant: undefined })?.word).toBe('testing…');
  });

  it('below five percent does not count, however significant', () => {
    for (const value of [95.1, 98, 100, 102, 104.9])
      expect(changeOf(value, 100, 'lower', 'ms', tested)?.verdict, String(value)).toBe('same');
  });

  it('between two shares near zero does not count', () => {
    expect(changeOf(0.00009, 0.00003, 'lower', 'share', tested)?.verdict).toBe('same');
    expect(changeOf(0.00009, 0, 'lower', 'share', tested)?.verdict).toBe('same');
    expect(changeOf(0.0009, 0.00003, 'lower', 'share', tested)?.verdict).toBe('worse');
  });

  it('with few samples is unknown, neither new nor worse', () => {
    expect(changeOf(5, 0, 'lower', 'count', { ...tested, few: true })).toMatchObject({ verdict: 'few', text: '' });
    expect(changeOf(5, 0, 'lower', 'count', tested)?.text).toBe('from 0');
    expect(changeOf(null, 100)).toBeNull();
    expect(changeOf(100, undefined)).toBeNull();
  });

  it('of a number that is neither good nor bad has no verdict', () => {
    expect(changeOf(80, 100, 'none', 'count', tested)?.verdict).toBe('changed');
    expect([signed(0.12), signed(-0.031), signed(0.001), signed(Infinity)]).toEqual(['+12 %', '−3.1 %', '±0 %', '+–']);
  });
});

const answer = (rows: [values: (number | null)[], base: (number | null)[] | null][]) =>
  ({
    signal: 'spans',
    by: ['name'],
    measures: [
      { name: 'p75_us', unit: 'us', better: 'lower' },
      { name: 'installs', unit: 'count', better: 'none' },
      { name: 'samples', unit: 'count', better: 'none' },
    ],
    rows: rows.map(([values, base], place) => ({ keys: [String(place)], values, base })),
  }) as unknown as TableAnswer;

describe('tests of changes', () => {
  it('are requested only if a change is large enough', () => {
    expect(
      toTest(
        answer([
          [
            [100, 50, 90],
            [99, 80, 90],
          ],
        ]),
      ),
    ).toEqual([]);
    expect(
      toTest(
        answer([
          [
            [100, 50, 90],
            [80, 80, 90],
          ],
        ]),
      ),
    ).toEqual(['p75_us']);
    expect(toTest(answer([[[100, 50, 90], null]]))).toEqual([]);
  });

  it('need enough installs and samples on both sides', () => {
    const few = (values: number[], base: number[] | null) => {
      const data = answer([[values, base]]);
      return isFew(data, data.rows[0]!);
    };
    expect(few([1, 20, 30], [1, 20, 30])).toBe(false);
    expect(few([1, 19, 30], [1, 20, 30])).toBe(true);
    expect(few([1, 20, 30], [1, 19, 30])).toBe(true);
    expect(few([1, 20, 30], [1, 20, 29])).toBe(true);
    expect(few([1, 20, 30], null)).toBe(true);
  });
});

describe('rates', () => {
  const rate = (count: number, installs: number, exposure: number) => ({ count, installs, exposure });

  it('differ by chance when few installs are affected', () => {
    expect(rateP(rate(12, 6, 100), rate(8, 4, 100))).toBeGreaterThan(0.3);
    expect(rateP(rate(300, 150, 100), rate(100, 50, 100))).toBeLessThan(1e-5);
    // A hundred janks of one install count as one install.
    expect(rateP(rate(100, 1, 100), rate(2, 2, 100))).toBeGreaterThan(0.001);
  });

  it('are not significant if a barely used version lacks a group', () => {
    expect(rateP(rate(40, 20, 1000), rate(0, 0, 10))).toBeGreaterThan(0.5);
    expect(rateP(rate(40, 20, 1000), rate(0, 0, 1000))).toBeLessThan(0.01);
    expect(rateP(rate(40, 20, 1000), rate(0, 0, 0))).toBe(1);
  });

  it('are corrected for the number of comparisons', () => {
    [0.03, 0.06, 0.06, 0.02].forEach((p, place) => expect(holm([0.01, 0.04, 0.03, 0.005])[place]).toBeCloseTo(p));
    expect(holm([])).toEqual([]);
  });

  it('of janks decide which groups changed', () => {
    const janks = {
      ...{ signal: 'janks', by: ['group_id', 'title'] },
      measures: [{ name: 'count' }, { name: 'installs' }],
      rows: [
        { keys: ['1', 'often'], values: [300, 150], base: [60, 40] },
        { keys: ['2', 'same'], values: [30, 15], base: [28, 14] },
        { keys: ['3', 'missing'], values: [200, 90], base: null },
        { keys: ['4', 'few'], values: [4, 4], base: null },
      ],
    } as unknown as TableAnswer;
    const judged = judge(janks, { hours: 100, baseHours: 100 });
    expect(judged.map((one) => one.significant)).toEqual([true, false, true, false]);
    expect(judged.map((one) => one.few)).toEqual([false, false, false, true]);
    // A barely used base lacks every group.
    expect(judge(janks, { hours: 100, baseHours: 0 }).every((one) => one.few)).toBe(true);
  });
});

// The timeout is long, because a busy machine parses slowly.
it('no page judges a change by itself', { timeout: 60_000 }, () => {
  const isJudging = (text: string) =>
    [...classesIn(text).flatMap(({ names }) => names), ...styledIn(text)].some((name) =>
      ['worse', 'better', 'verdict'].includes(name),
    );
  // Parses only sources with a name of a verdict, because parsing is slow.
  const own = Object.entries(COMPONENTS).filter(
    ([, text]) => /\b(worse|better|verdict)\b/.test(text) && isJudging(text),
  );
  expect(own.map(([path]) => path)).toEqual(['../src/components/Change.svelte']);
  expect(isJudging("<i class={change > 0 ? 'worse' : 'muted'}>a</i>")).toBe(true);
  expect(isJudging('<i class={tone}>a</i><style>.better { color: green; }</style>')).toBe(true);
});
