import { describe, expect, it } from 'vitest';
import {
  chartAddress,
  lasting,
  sameFilters,
  sameGroup,
  timeAround,
  worstFirst,
  type Evidence,
  type Incident,
} from '../src/alerts/around';
import { dimensionsIn } from '../src/alerts/names';
import { BLANK, inWords, span, toDocument, toForm, type Rule } from '../src/alerts/rule_form';
import { byGroup, days, groupName, place, stretches, type Transition } from '../src/alerts/stretches';
import { toChange, toForm as channelForm, type Channel } from '../src/notifications/channel_form';

const MINUTE = 60_000_000;
const HOUR = 60 * MINUTE;

function happened(at: number, what: string, group: Record<string, string> = { name: 'checkout' }): Transition {
  return { at, what, group, summary: `${what} at ${at}`, link: '/spans' };
}

describe('stretches of firing', () => {
  it('go from each firing to the end of the same group', () => {
    const cart = { name: 'cart' };
    const told = [happened(10, 'fired'), happened(20, 'fired', cart), happened(30, 'resolved'), happened(40, 'fired')];
    const all = stretches(told, 100);
    expect(all.map(({ group, from, until, goesOn }) => ({ group, from, until, goesOn }))).toEqual([
      { group: 'checkout', from: 10, until: 30, goesOn: false },
      { group: 'cart', from: 20, until: 100, goesOn: true },
      { group: 'checkout', from: 40, until: 100, goesOn: true },
    ]);
    expect(all[0]!.because).toBe('resolved at 30');
    // As long as each other: as they began.
    expect(byGroup(all).map((one) => [one.group, one.stretches.length])).toEqual([
      ['checkout', 2],
      ['cart', 1],
    ]);
  });

  it('are a moment where only the mix of devices changed', () => {
    const [shift] = stretches([happened(10, 'mix_shift'), happened(20, 'resolved')], 100);
    expect(shift).toMatchObject({ from: 10, until: 10, goesOn: false, isShift: true });
  });

  it('have a name, also when nothing is told apart', () => {
    expect(groupName({})).toBe('Everything');
    expect(groupName({ app_id: 'shop', page: '' })).toBe('shop · (none)');
  });

  it('stand on a line between two times, with few midnights', () => {
    expect(place(5, 0, 10)).toBe(50);
    expect(place(-5, 0, 10)).toBe(0);
    expect(place(5, 10, 10)).toBe(0);
    const from = new Date(2026, 10, 1, 12).getTime() * 1000;
    expect(days(from, from + 30 * 24 * HOUR, 5).length).toBeLessThanOrEqual(5);
    expect(new Date(days(from, from + 24 * HOUR)[0]! / 1000).getHours()).toBe(0);
  });
});

const RULES: [string, Rule, string][] = [
  [
    'a bound on a share',
    {
      ...BLANK,
      name: 'Frozen frames',
      severity: 'critical',
      metric: {
        signal: 'frame_windows',
        measure: 'frozen_share',
        filters: { page: ['Cart'], 'contains.locale': ['de'] },
      },
      condition: { kind: 'threshold', above: 0.005, recover: 0.003 },
    },
    'share',
  ],
  [
    'a regression in microseconds',
    {
      ...BLANK,
      name: 'Spans',
      condition: {
        kind: 'regression',
        compare: 'same_age',
        effect: { worse: 'up', least_relative: 0.1, least_absolute: 10_000, significance: 0.001, recover: 0.5 },
      },
      mute_windows: [{ days: ['sat'], from: '22:00', to: '06:00', utc_offset_minutes: 60 }],
    },
    'us',
  ],
  ['absence', { ...BLANK, name: 'Quiet', condition: { kind: 'absence' } }, 'count'],
];

describe('a rule as a form', () => {
  it.each(RULES)('%s is the same again', (_, rule, unit) => {
    const again = toDocument(toForm(rule, unit), unit);
    expect(again).toEqual({
      severity: 'warning',
      owner: '',
      enabled: true,
      for_minutes: 5,
      keep_minutes: 120,
      least_samples: 100,
      ...rule,
    });
  });

  it('shows what people type: percent, milliseconds', () => {
    expect(toForm(RULES[0]![1], 'share')).toMatchObject({ bound: '0.5', recover: '0.3', direction: 'above' });
    expect(toForm(RULES[1]![1], 'us')).toMatchObject({ relative: '10', absolute: '10', recoverPart: '50' });
  });

  it('keeps what this page does not know', () => {
    const action = { tracing: true, hours: 3, sampling: { janks: 1 }, events_per_day: 5 };
    expect(toDocument(toForm({ ...BLANK, action }, 'us'), 'us').action).toEqual(action);
  });

  it('raises the share of what is watched, and no more when that is taken back', () => {
    const form = { ...toForm(BLANK, 'us'), raise: '50', eventsPerDay: '1000' };
    const rule = toDocument(form, 'us');
    expect(rule.action).toEqual({ sampling: { spans: 0.5 }, events_per_day: 1000 });
    expect(toForm(rule, 'us')).toMatchObject({ raise: '50', eventsPerDay: '1000' });
    expect('action' in toDocument({ ...toForm(rule, 'us'), raise: '' }, 'us')).toBe(false);
  });

  it('has no number where none was typed, so that the server says so', () => {
    const form = { ...toForm(BLANK, 'us'), bound: '' };
    expect(JSON.parse(JSON.stringify(toDocument(form, 'us'))).condition).toEqual({ kind: 'threshold', above: null });
  });

  it('is told in words', () => {
    expect(inWords(RULES[1]![1], 'p95')).toBe('spans, p95 by name: worse than the version before, over 1 hour');
    expect([span(30), span(120), span(1440), span(10_080)]).toEqual(['30 minutes', '2 hours', '1 day', '7 days']);
  });

  it('learns the dimensions from what the server says is wrong', () => {
    expect(dimensionsIn(['spans have no dimension `?`: they have name, kind, app_id'])).toEqual([
      'name',
      'kind',
      'app_id',
    ]);
    expect(dimensionsIn([])).toEqual([]);
  });
});

const EVIDENCE = {
  metric: { signal: 'spans', measure: 'p95_us', by: ['name'], filters: { device_class: ['low'], kind: ['internal'] } },
  group: { name: 'checkout', app_id: 'shop' },
  sides: { from: 0, to: 24 * HOUR, version: '4.12.0', base_version: '4.11.0' },
  window_minutes: 1440,
  question:
    '/api/v1/projects/p/query/spans?from=a&to=b&measure=p95_us&measure=count&exact=true&device_class=low&name=checkout&app_id=shop&app_version=4.12.0&base_app_version=4.11.0',
} as unknown as Evidence;

describe('around an incident', () => {
  it('the chart asks what the rule asked, of both versions', () => {
    const [path, text] = chartAddress(EVIDENCE, { from: 0, to: HOUR }).split('?');
    const query = new URLSearchParams(text);
    expect(path).toBe('/api/v1/projects/p/query/spans/series');
    expect(query.get('from')).toBe('1970-01-01T00:00:00.000Z');
    expect(query.getAll('measure')).toEqual(['p95_us']);
    expect(query.getAll('app_version')).toEqual(['4.12.0', '4.11.0']);
    expect(query.get('by')).toBe('app_version');
    expect([query.get('name'), query.get('device_class'), query.get('exact')]).toEqual(['checkout', 'low', null]);
  });

  it('shows time before and after it, and nothing that is to come', () => {
    const incident = { started_at: 24 * HOUR, resolved_at: 30 * HOUR, evidence: EVIDENCE };
    expect(timeAround(incident, 1000 * HOUR)).toEqual({ from: -48 * HOUR, to: 78 * HOUR });
    expect(timeAround({ ...incident, resolved_at: null }, 40 * HOUR).to).toBe(40 * HOUR);
  });

  it('other questions get the filters that every screen has', () => {
    const filters = sameFilters(EVIDENCE, 'p');
    expect(filters.chosen).toEqual({ device_class: ['low'], app_id: ['shop'], app_version: ['4.12.0'] });
    expect(filters.baseVersion).toBe('4.11.0');
  });

  it('the worst stand first, and groups are the same in any order', () => {
    const one = (severity: string, started_at: number) => ({ severity, started_at }) as Incident;
    const sorted = worstFirst([one('info', 3), one('critical', 1), one('critical', 2)]);
    expect(sorted.map(({ started_at }) => started_at)).toEqual([2, 1, 3]);
    expect(sameGroup({ a: '1', b: '2' }, { b: '2', a: '1' })).toBe(true);
    expect(sameGroup({ a: '1' }, { a: '1', b: '2' })).toBe(false);
  });

  it('says for how long', () => {
    const started_at = 0;
    expect(lasting({ started_at }, 20_000_000)).toBe('less than a minute');
    expect(lasting({ started_at, resolved_at: 90 * MINUTE }, 0)).toBe('90 min');
    expect(lasting({ started_at }, 100 * HOUR)).toBe('4 d');
  });
});

describe('a channel as a form', () => {
  const saved = {
    kind: 'webhook',
    name: 'Ops',
    to: [],
    least_severity: 'warning',
    digest_hour: 7,
  } as unknown as Channel;

  it('says nothing of secrets that were not typed', () => {
    const change = toChange(channelForm(saved), false);
    expect(Object.keys(change)).not.toContain('url');
    expect(Object.keys(change)).not.toContain('kind');
    expect(Object.keys(change)).not.toContain('password');
  });

  it('takes secrets away only when asked to', () => {
    const forget = { ...channelForm(saved), forget: true };
    expect(toChange(forget, false)).toMatchObject({ signing_key: null, username: null, password: null });
    expect(toChange({ ...forget, kind: 'slack' }, false)).not.toHaveProperty('signing_key');
  });

  it('mails to several, and has no URL then', () => {
    const mail = {
      ...channelForm(null),
      kind: 'email' as const,
      url: 'https://x.example',
      to: 'a@x.example, b@x.example',
    };
    const change = toChange(mail, true);
    expect(change.to).toEqual(['a@x.example', 'b@x.example']);
    expect(change).not.toHaveProperty('url');
  });
});
