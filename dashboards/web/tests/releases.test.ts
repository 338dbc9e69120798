import { describe, expect, it } from 'vitest';
import type { SeriesAnswer, TableAnswer } from '../src/api/query';
import type { Incident } from '../src/alerts/incident';
import { activeOf, activeQuestion } from '../src/breakdown/active_question';
import { activeIn, activeShare, shareOfInstalls } from '../src/format/affected';
import { readFilters } from '../src/navigation/filters';
import { concerns } from '../src/releases/concerns';
import { sharesOfVersion } from '../src/releases/shares_of_version';
import { versionEvidence, type VersionFindings } from '../src/releases/version_markdown';
import { versionRows } from '../src/releases/version_rows';
import { MOST_MARKS, marksIn, placeMarks, releasedIn } from '../src/versions/release_marks';
import type { Release } from '../src/versions/releases.svelte';

const DAY = 86_400;
const DAYS = Array.from({ length: 30 }, (_, day) => day * DAY);

function release(version: string, reached: number | null, app = 'shop'): Release {
  return { app, version, firstSeen: 0, lastSeen: 30 * DAY, reached };
}

describe('releases of a chart', () => {
  it('are those that reached users within its buckets, newest first', () => {
    const releases = [
      release('4.12.0', 12.5 * DAY),
      release('4.11.0', 3 * DAY),
      release('4.10.0', null),
      release('4.9.0', -1),
      release('4.13.0', 30 * DAY),
      release('1.0', 5 * DAY, 'till'),
    ];
    const marks = marksIn(releases, DAYS, ['shop']);
    expect(marks.map(({ version, bucket }) => [version, bucket])).toEqual([
      ['4.12.0', 12],
      ['4.11.0', 3],
    ]);
    expect(marksIn(releases, DAYS)).toHaveLength(3);
    expect(marksIn(releases, [0])).toEqual([]);
    expect([releasedIn(marks, 12), releasedIn(marks, 13)]).toEqual(['4.12.0', '']);
  });

  it('have names that do not overlap, on either side of their lines', () => {
    const marks = marksIn(
      [release('4.12.1', 13 * DAY), release('4.12.0', 12 * DAY), release('4.11.9', 12.2 * DAY)],
      DAYS,
    );
    const { placed, left } = placeMarks(marks, (bucket) => 64 + bucket * 10, [64, 364]);
    expect(placed.map(({ version, x, isLeft }) => [version, x, isLeft])).toEqual([
      ['4.12.1', 194, false],
      ['4.11.9', 184, true],
    ]);
    // There is no room for the oldest one.
    expect(left).toBe(1);
  });

  it('stay inside the chart', () => {
    const marks = marksIn([release('4.12.0', 29 * DAY), release('4.11.0', 0)], DAYS);
    const { placed } = placeMarks(marks, (bucket) => 64 + bucket * 10, [64, 364]);
    expect(placed.map(({ isLeft }) => isLeft)).toEqual([true, false]);
  });

  it('are at most eight', () => {
    const many = DAYS.map((at, day) => release(`1.${day}`, at));
    const { placed, left } = placeMarks(marksIn(many, DAYS), (bucket) => bucket * 100, [0, 4000]);
    expect([placed.length, left]).toEqual([MOST_MARKS, 30 - MOST_MARKS]);
    expect(placed[0]!.version).toBe('1.29');
  });
});

describe('the share of active installs', () => {
  const answer = { by: ['page', 'app_version'], from: '2026-11-01T00:00:10Z', to: '2026-11-08T00:00:10Z' };

  it('is asked for the period of the table, its filters, and the dimensions that batches have', () => {
    const filters = readFilters(new URLSearchParams('app_id=shop&app_version=4.12.0&base_app_version=4.11.0'));
    const { question, filters: asked } = activeQuestion(answer, filters)!;
    expect(question).toMatchObject({ signal: 'usage', by: ['app_version'], measures: ['installs'] });
    expect(asked.chosen).toEqual({ app_id: ['shop'] });
    expect(asked.baseVersion).toBe('');
    expect(asked.range).toEqual({
      kind: 'absolute',
      from: new Date('2026-11-01T00:00:00Z'),
      to: new Date('2026-11-08T00:01:00Z'),
    });
  });

  it('is unknown for pages, networks and days', () => {
    expect(activeQuestion(answer, readFilters(new URLSearchParams('page=Cart')))).toBeNull();
    expect(activeQuestion(answer, readFilters(new URLSearchParams('network=wifi')))).toBeNull();
    expect(activeQuestion({ ...answer, by: ['day'] }, readFilters(new URLSearchParams()))).toBeNull();
  });

  it('is of the installs of the same version', () => {
    const active = { by: ['app_version'], rows: [{ keys: ['4.11.0'], values: [80] }] } as unknown as TableAnswer;
    expect(activeOf(active, answer, ['Cart', '4.11.0'])).toBe(80);
    expect(activeOf(active, answer, ['Cart', '4.12.0'])).toBeNull();
    const all = { by: [], rows: [{ keys: [], values: [200] }] } as unknown as TableAnswer;
    expect(activeOf(all, { ...answer, by: ['page'] }, ['Cart'])).toBe(200);
  });

  it('has one wording', () => {
    expect(shareOfInstalls(16, 500)).toBe('3.2 % of 500 installs');
    expect(activeShare(501, 500)).toBe('100 %');
    const chosen = { app_version: ['4.12.0'], os_name: ['android', 'ios'] };
    const week = ['2026-11-17T00:00:00Z', '2026-11-27T00:00:00Z'] as const;
    expect(activeIn(...week, { chosen })).toBe('17 Nov – 26 Nov, app version 4.12.0, OS android or ios');
    expect(activeIn(...week, { chosen }, ['app_version'])).toBe(
      '17 Nov – 26 Nov, OS android or ios, the same app version',
    );
    expect([shareOfInstalls(16, null), shareOfInstalls(16, 0), shareOfInstalls(null, 500)]).toEqual(['', '', '']);
  });
});

describe('versions', () => {
  const usage = (by: string[], rows: [string[], number[]][]) =>
    ({
      by,
      measures: [{ name: 'installs' }, { name: 'sessions' }],
      rows: rows.map(([keys, values]) => ({ keys, values })),
    }) as unknown as TableAnswer;

  it('are listed newest first, with their share of the app', () => {
    const used = usage(
      ['app_id', 'app_version'],
      [
        [
          ['shop', '4.9.0'],
          [30, 40],
        ],
        [
          ['shop', '4.10.0'],
          [60, 160],
        ],
      ],
    );
    const apps = usage(['app_id'], [[['shop'], [80, 200]]]);
    const rows = versionRows(used, apps, [release('4.10.0', DAY)]);
    expect(rows.map(({ version }) => version)).toEqual(['4.10.0', '4.9.0']);
    expect(rows[0]).toMatchObject({ installs: 60, ofInstalls: 80, sessions: 160, ofSessions: 200 });
    expect([rows[0]!.release?.reached, rows[1]!.release]).toEqual([DAY, null]);
  });

  it('have shares only where anything was used', () => {
    const series = (times: number[], values: (number | null)[]) =>
      ({ times, series: [{ keys: [], values: { installs: values } }] }) as unknown as SeriesAnswer;
    const all = series([0, 1, 2, 3], [10, 0, 20, null]);
    expect(sharesOfVersion(series([0, 2], [5, 20]), all, 'installs')).toEqual([0.5, null, 1, null]);
  });

  it('are concerned by incidents that name them', () => {
    const incident = (group: object, version: string | null, filters = {}) =>
      ({ group, evidence: { metric: { filters }, sides: { version } } }) as unknown as Incident;
    const shop = { app: 'shop', version: '4.12.0' };
    expect(concerns(incident({ app_id: 'shop' }, '4.12.0'), shop)).toBe(true);
    expect(concerns(incident({ app_id: 'till' }, '4.12.0'), shop)).toBe(false);
    expect(concerns(incident({ app_version: '4.12.0' }, null), shop)).toBe(true);
    expect(concerns(incident({}, null, { app_version: ['4.12.0'] }), shop)).toBe(true);
    expect(concerns(incident({ name: 'checkout' }, null), shop)).toBe(false);
    expect(concerns(incident({}, '4.11.0'), shop)).toBe(false);
  });
});

describe('the Markdown of a version', () => {
  const change = {
    kind: 'Span',
    name: 'checkout',
    measure: 'p75',
    unit: 'ms',
    value: 200,
    base: 100,
    change: 1,
    installs: 50,
    active: 200,
    least: 1,
    href: '/spans?app_version=4.12.0&base_app_version=4.11.0&name=checkout',
  };
  const findings: VersionFindings = {
    pair: { app: 'shop', latest: '4.12.0', previous: '4.11.0', all: ['4.11.0', '4.12.0'] },
    release: release('4.12.0', 12 * DAY),
    changes: { worse: [change], better: [], tooFew: 0, byChance: 0 },
    incidents: ['checkout is slower'],
    missing: 2,
    filters: readFilters(new URLSearchParams('range=30d')),
  };

  it('has the changes, and links with a fixed time', () => {
    const { title, about, table, facts, links } = versionEvidence(findings);
    expect([title, about]).toEqual([
      'Version 4.12.0',
      ['Compared with 4.11.0: 1 significantly worse, 0 significantly better.'],
    ]);
    expect(table!.rows).toEqual([
      ['+100 %, worse', 'Span', 'checkout', '200 ms (p75)', '100 ms', '50 (25 % of 200 installs)'],
    ]);
    expect(facts).toContainEqual(['Open incidents', 'checkout is slower']);
    for (const { path } of links) expect(path).toMatch(/from=.*to=/);
    expect(links[1]!.path).toContain('name=checkout');
  });

  it('says so if there is no earlier version', () => {
    const alone = { ...findings, pair: { ...findings.pair, previous: '' }, changes: undefined };
    const { about, table } = versionEvidence(alone);
    expect(about).toEqual(['There is no earlier version to compare with.']);
    expect(table!.rows).toEqual([]);
  });
});
