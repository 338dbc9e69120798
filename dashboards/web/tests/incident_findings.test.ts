import { describe, expect, it } from 'vitest';
import type { Evidence } from '../src/alerts/incident';
import { likelyCause, rateOf } from '../src/alerts/janks_beside';
import { presentSince } from '../src/alerts/present_since';
import { betterOf } from '../src/alerts/worse_direction';
import type { SeriesAnswer } from '../src/api/query';
import { judgeSides } from '../src/jank/group_changes';
import type { Group } from '../src/jank/groups';

const DAYS = [0, 1, 2, 3, 4].map((day) => day * 86_400);

function evidence(more: Partial<Evidence>): Evidence {
  return {
    metric: { signal: 'spans', measure: 'p95_us' },
    condition: { kind: 'threshold', above: 100 },
    numbers: { bound: 100, samples: 40 },
    sides: { from: 0, to: 0 },
    ...more,
  } as Evidence;
}

function chart(...lines: { key?: string; values: (number | null)[] }[]): SeriesAnswer {
  const series = lines.map(({ key, values }) => ({ keys: key ? [key] : [], values: { p95_us: values } }));
  return { times: DAYS, series } as unknown as SeriesAnswer;
}

describe('present since', () => {
  it('is the first bad bucket of the run before the alert', () => {
    const found = presentSince(evidence({}), chart({ values: [150, 50, 60, 120, 130] }), DAYS[4]!);
    expect(found).toEqual({ at: DAYS[3], isFirst: false, limit: 100, isAbove: true });
  });
  it('bridges a single good bucket and buckets without data', () => {
    const found = presentSince(evidence({}), chart({ values: [120, null, 90, 120, 130] }), DAYS[4]!);
    expect(found).toMatchObject({ at: DAYS[0], isFirst: true });
  });
  it('is never before the first sight of the version, which may be later than its bucket begins', () => {
    const found = presentSince(
      evidence({}),
      chart({ values: [null, null, null, 120, 130] }),
      DAYS[4]!,
      DAYS[3]! + 25_200,
    );
    expect(found).toMatchObject({ at: DAYS[3]! + 25_200, isFirst: true });
  });
  it('ignores what came after the alert, and is unknown without a bad number before', () => {
    expect(presentSince(evidence({}), chart({ values: [50, 50, 50, 50, 130] }), DAYS[3]!)).toBeNull();
    expect(presentSince(evidence({}), chart({ values: [50, 50, 120, 50, 50] }), DAYS[4]!)).toBeNull();
    expect(presentSince(evidence({}), chart(), DAYS[4]!)).toBeNull();
  });
  it('compares the newer version with the base and the least change', () => {
    const regression = evidence({
      condition: { kind: 'regression', compare: 'same_age' },
      numbers: { bound: 0.2, base: 100, samples: 40 },
      sides: { from: 0, to: 0, version: '2', base_version: '1' },
    });
    const lines = chart(
      { key: '1', values: [200, 200, 100, 100, 100] },
      { key: '2', values: [null, 110, 110, 130, 140] },
    );
    expect(presentSince(regression, lines, DAYS[4]!)).toMatchObject({ at: DAYS[3], isFirst: false, limit: 120 });
  });
  it('is unknown for rules without a fixed limit', () => {
    const lastWeek = evidence({ condition: { kind: 'last_week' }, numbers: { bound: 0.2, base: 100, samples: 40 } });
    expect(presentSince(lastWeek, chart({ values: [150, 150, 150, 150, 150] }), DAYS[4]!)).toBeNull();
  });
});

describe('an incident of a metric', () => {
  const open = (condition: unknown, name: string) =>
    [
      { evidence: evidence({ metric: { signal: 'metrics', measure: 'p75' }, group: { name }, condition } as never) },
    ] as never;
  it('says in which direction the metric is worse', () => {
    expect(betterOf(open({ kind: 'threshold', above: 5 }, 'memory'), 'memory')).toBe('lower');
    expect(betterOf(open({ kind: 'threshold', below: 5 }, 'memory'), 'memory')).toBe('higher');
    expect(betterOf(open({ kind: 'regression' }, 'memory'), 'memory')).toBe('lower');
    expect(betterOf(open({ kind: 'threshold', above: 5 }, 'cpu'), 'memory')).toBeUndefined();
  });
});

describe('the likely cause', () => {
  /** Groups by their janks and installs, now and in the base. Both sides have 100 hours of use. */
  function ratesOf(groups: [title: string, now: [number, number], base: [number, number]][], fresh: string[] = []) {
    const use = { hours: 100, baseHours: 100 };
    const sides = groups.map(([title, [count, installs], [baseCount, baseInstalls]]) => ({
      ...{ id: title, title, count, installs, baseCount, baseInstalls },
    }));
    return judgeSides(sides, use).map((judged, place) => {
      const group = { title: judged.title, row: { keys: [], values: groups[place]![1] } } as unknown as Group;
      return rateOf(group, { ...judged, isNew: fresh.includes(judged.title) }, use);
    });
  }

  it('is the first group that is new or significantly more frequent', () => {
    const rates = ratesOf(
      [
        ['same', [200, 100], [200, 100]],
        ['grew by chance', [12, 9], [10, 8]],
        ['few', [4, 4], [1, 1]],
        ['less', [60, 40], [300, 150]],
        ['grew', [300, 150], [60, 40]],
        ['new', [300, 150], [0, 0]],
      ],
      ['new'],
    );
    expect(likelyCause(rates)?.group.title).toBe('grew');
    expect(likelyCause(rates.slice(0, 4))).toBeUndefined();
    expect(likelyCause(rates.slice(5))?.group.title).toBe('new');
    expect(rates.map((one) => one.base)).toEqual([2, 0.1, null, 3, 0.6, 0]);
  });

  it('can be a group that the base version once had elsewhere', () => {
    const [back] = ratesOf([['back', [300, 150], [0, 0]]]);
    expect([back!.isNew, likelyCause([back!])?.group.title]).toEqual([false, 'back']);
  });

  it('is unknown without a comparison', () => {
    const group = { title: 'often', row: { keys: [], values: [300, 150] } } as unknown as Group;
    const rate = rateOf(group, undefined, { hours: 100, baseHours: 0 });
    expect([rate.now, rate.base, likelyCause([rate])]).toEqual([3, null, undefined]);
  });
});
