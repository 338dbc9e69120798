import { describe, expect, it } from 'vitest';
import type { Evidence } from '../src/alerts/incident';
import { likelyCause, type Rate } from '../src/alerts/janks_beside';
import { presentSince } from '../src/alerts/present_since';
import { betterOf } from '../src/alerts/worse_direction';
import type { SeriesAnswer } from '../src/api/query';

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
  const rate = (title: string, more: Partial<Rate>) =>
    ({ group: { title }, now: 2, base: null, isNew: false, ...more }) as Rate;
  it('is the first group that is new or more frequent', () => {
    const rates = [
      rate('same', { base: 2 }),
      rate('unknown', {}),
      rate('grew', { base: 1 }),
      rate('new', { isNew: true }),
    ];
    expect(likelyCause(rates)?.group.title).toBe('grew');
    expect(likelyCause(rates.slice(0, 2))).toBeUndefined();
  });
});
