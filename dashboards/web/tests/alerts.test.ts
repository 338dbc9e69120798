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
} from '../src/alerts/incident';
import { leftOut, watched } from '../src/alerts/evidence_text';
import { dimensionsIn } from '../src/alerts/rule_signals';
import { everBefore, mostlyOn, sidesOf } from '../src/alerts/janks_beside';
import { activeMuteOf, coverage, muteOf, type Mute } from '../src/alerts/mutes';
import { BLANK, span, toDocument, toForm, type Rule } from '../src/alerts/rule_form';
import { muteNotes, reasonOf } from '../src/alerts/skipped';
import { byGroup, days, groupName, place, stretches, type Transition } from '../src/alerts/firing_periods';
import { toChange, toForm as channelForm, type Channel } from '../src/notifications/channel_form';

const MINUTE = 60_000_000;
const HOUR = 60 * MINUTE;

function happened(at: number, what: string, group: Record<string, string> = { name: 'checkout' }): Transition {
  return { at, what, group, summary: `${what} at ${at}`, link: '/spans' };
}

describe('stretches of firing', () => {
  it('last from the firing of a group to its end', () => {
    const cart = { name: 'cart' };
    const transitions = [
      happened(10, 'fired'),
      happened(20, 'fired', cart),
      happened(30, 'resolved'),
      happened(40, 'fired'),
    ];
    const all = stretches(transitions, 100);
    expect(all.map(({ group, from, until, goesOn }) => ({ group, from, until, goesOn }))).toEqual([
      { group: 'checkout', from: 10, until: 30, goesOn: false },
      { group: 'cart', from: 20, until: 100, goesOn: true },
      { group: 'checkout', from: 40, until: 100, goesOn: true },
    ]);
    expect(all[0]!.because).toBe('resolved at 30');
    // With equal durations, the order of their starts.
    expect(byGroup(all).map((one) => [one.group, one.stretches.length])).toEqual([
      ['checkout', 2],
      ['cart', 1],
    ]);
  });

  it('are a single moment if only the mix of devices changed', () => {
    const [shift] = stretches([happened(10, 'mix_shift'), happened(20, 'resolved')], 100);
    expect(shift).toMatchObject({ from: 10, until: 10, goesOn: false, isShift: true });
  });

  it('have a name even without a dimension', () => {
    expect(groupName({})).toBe('Everything');
    expect(groupName({ app_id: 'shop', page: '' })).toBe('shop · (none)');
  });

  it('have a place between two times, with few midnights', () => {
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
  ['appearance', { ...BLANK, name: 'New', condition: { kind: 'appearance', unseen_days: 14 } }, 'count'],
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

  it('shows numbers in the units of the fields: percent, milliseconds', () => {
    expect(toForm(RULES[0]![1], 'share')).toMatchObject({ bound: '0.5', recover: '0.3', direction: 'above' });
    expect(toForm(RULES[1]![1], 'us')).toMatchObject({ relative: '10', absolute: '10', recoverPart: '50' });
  });

  it('compares at the same age when it becomes a regression, and on the same days if a regression names no period', () => {
    expect(toForm(BLANK, 'us').compare).toBe('same_age');
    expect(toForm({ ...BLANK, condition: { kind: 'regression' } }, 'us').compare).toBe('same_days');
  });

  it('keeps parts of a rule that this page does not know', () => {
    const action = { tracing: true, hours: 3, sampling: { janks: 1 }, events_per_day: 5 };
    expect(toDocument(toForm({ ...BLANK, action }, 'us'), 'us').action).toEqual(action);
  });

  it('raises the sample rate of the watched signal, and stops when the reader turns it off', () => {
    const form = { ...toForm(BLANK, 'us'), raise: '50', eventsPerDay: '1000' };
    const rule = toDocument(form, 'us');
    expect(rule.action).toEqual({ sampling: { spans: 0.5 }, events_per_day: 1000 });
    expect(toForm(rule, 'us')).toMatchObject({ raise: '50', eventsPerDay: '1000' });
    expect('action' in toDocument({ ...toForm(rule, 'us'), raise: '' }, 'us')).toBe(false);
  });

  it('has no number for an empty field, so that the server reports it', () => {
    const form = { ...toForm(BLANK, 'us'), bound: '' };
    expect(JSON.parse(JSON.stringify(toDocument(form, 'us'))).condition).toEqual({ kind: 'threshold', above: null });
  });

  it('has durations in words', () => {
    expect([span(30), span(120), span(1440), span(10_080)]).toEqual(['30 minutes', '2 hours', '1 day', '7 days']);
  });

  it('learns the dimensions from the error of the server', () => {
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
  it('names what its screen does not filter by', () => {
    const metric = { ...EVIDENCE.metric, filters: { kind: ['manual'], uptime: ['15m_1h', 'over_1h'] } };
    const evidence = { ...EVIDENCE, metric, group: { page: 'Cart' } };
    const link = '/spans?project=shop&kind=manual&page=Cart';
    expect(leftOut({ link, evidence })).toEqual(['time since the launch']);
    expect(leftOut({ link: `${link}&uptime=15m_1h&uptime=over_1h`, evidence })).toEqual([]);
    expect(watched(evidence)).toContain('time since the launch is 15–60 min or over 1 h and page is Cart');
  });

  it('the chart queries the measure of the rule, for both versions', () => {
    const [path, text] = chartAddress(EVIDENCE, { from: 0, to: HOUR }).split('?');
    const query = new URLSearchParams(text);
    expect(path).toBe('/api/v1/projects/p/query/spans/series');
    expect(query.get('from')).toBe('1970-01-01T00:00:00.000Z');
    expect(query.getAll('measure')).toEqual(['p95_us']);
    expect(query.getAll('app_version')).toEqual(['4.12.0', '4.11.0']);
    expect(query.get('by')).toBe('app_version');
    expect([query.get('name'), query.get('device_class'), query.get('exact')]).toEqual(['checkout', 'low', null]);
  });

  it('shows the time before and after the incident, but not the future', () => {
    const incident = { started_at: 24 * HOUR, resolved_at: 30 * HOUR, evidence: EVIDENCE };
    expect(timeAround(incident, 1000 * HOUR)).toEqual({ from: -48 * HOUR, to: 78 * HOUR });
    expect(timeAround({ ...incident, resolved_at: null }, 40 * HOUR).to).toBe(40 * HOUR);
  });

  it('other queries get the filters of every page', () => {
    const filters = sameFilters(EVIDENCE, 'p');
    expect(filters.chosen).toEqual({ device_class: ['low'], app_id: ['shop'], app_version: ['4.12.0'] });
    expect(filters.baseVersion).toBe('4.11.0');
    const evidence = { ...EVIDENCE, group: { 'attribute.payment': 'card' } };
    expect(sameFilters(evidence, 'p').chosen['attribute.payment']).toEqual(['card']);
  });

  it('the worst groups come first, and the order of their keys does not matter', () => {
    const one = (severity: string, started_at: number) => ({ severity, started_at }) as Incident;
    const sorted = worstFirst([one('info', 3), one('critical', 1), one('critical', 2)]);
    expect(sorted.map(({ started_at }) => started_at)).toEqual([2, 1, 3]);
    const handled = { ...one('critical', 9), acknowledged_by: 'user:1' };
    expect(worstFirst([handled, one('info', 3)])[1]).toBe(handled);
    expect(sameGroup({ a: '1', b: '2' }, { b: '2', a: '1' })).toBe(true);
    expect(sameGroup({ a: '1' }, { a: '1', b: '2' })).toBe(false);
  });

  it('shows how long it lasted', () => {
    const started_at = 0;
    expect(lasting({ started_at }, 20_000_000)).toBe('less than a minute');
    expect(lasting({ started_at, resolved_at: 90 * MINUTE }, 0)).toBe('90 min');
    expect(lasting({ started_at }, 100 * HOUR)).toBe('4 d');
  });
});

describe('the janks during an incident', () => {
  const regression = {
    ...EVIDENCE,
    condition: { kind: 'regression' },
    sides: {
      from: 48 * HOUR,
      to: 72 * HOUR,
      base_from: 0,
      base_to: 24 * HOUR,
      version: '4.12.0',
      base_version: '4.11.0',
    },
  } as unknown as Evidence;

  it('are compared with the time and the version of the base', () => {
    const { now, base } = sidesOf(regression, 'p');
    expect(now.chosen.app_version).toEqual(['4.12.0']);
    expect(base!.chosen.app_version).toEqual(['4.11.0']);
    expect(base!.range).toEqual({ kind: 'absolute', from: new Date(0), to: new Date(24 * 3_600_000) });
    // Each side is a separate query, so neither has a base.
    expect([now.baseVersion, base!.baseVersion]).toEqual(['', '']);
  });

  it('have the same version on both sides in a comparison of weeks', () => {
    const week = {
      ...regression,
      condition: { kind: 'last_week' },
      sides: { from: 48, to: 72, base_from: 0, base_to: 24 },
    };
    expect(sidesOf(week as unknown as Evidence, 'p').base!.chosen.app_version).toBeUndefined();
    const bound = { ...regression, condition: { kind: 'threshold' } } as unknown as Evidence;
    expect(sidesOf(bound, 'p').base).toBeNull();
  });

  it('are new only if no stored jank from before has the group, whatever its page and device', () => {
    const filters = { ...sidesOf(regression, 'p').now, baseVersion: '' };
    const narrow = { ...filters, chosen: { ...filters.chosen, page: ['Cart'] } };
    const ofVersion = everBefore(regression, narrow);
    expect(ofVersion.chosen).toEqual({ app_id: ['shop'], app_version: ['4.11.0'] });
    const week = { ...regression, sides: { from: 48 * HOUR, to: 72 * HOUR } } as unknown as Evidence;
    expect(everBefore(week, narrow)).toMatchObject({
      range: { to: new Date(48 * 3_600_000) },
      chosen: { app_id: ['shop'] },
    });
    expect(everBefore(week, narrow).chosen.app_version).toBeUndefined();
  });

  it('are limited to the pages with most of the events', () => {
    const rows = [
      { page: 'Checkout', count: 900 },
      { page: 'Cart', count: 80 },
      { page: 'Home', count: 20 },
    ];
    expect(mostlyOn(rows)).toEqual(['Checkout', 'Cart']);
    expect(mostlyOn([...rows, { page: '', count: 500 }])).toEqual([]);
    expect(mostlyOn([])).toEqual([]);
  });
});

describe('mutes', () => {
  const mute = (change: Partial<Mute>): Mute => ({
    id: 'm',
    starts_at: 0,
    ends_at: 10 * HOUR,
    reason: 'load test',
    created_by: 'user:1',
    created_at: 0,
    ...change,
  });
  const incident = { rule: 'r', group: { name: 'checkout' } };
  const now = 5 * 3_600_000;

  it('cover an incident by project, by rule or by group', () => {
    const ofOthers = [mute({ rule: 'other' }), mute({ rule: 'r', group: { name: 'cart' } })];
    expect(muteOf(ofOthers, incident, now)).toBeNull();
    for (const one of [mute({}), mute({ rule: 'r' }), mute({ rule: 'r', group: { name: 'checkout' } })])
      expect(muteOf([...ofOthers, one], incident, now)).toBe(one);
  });

  it('that are active come before future ones, the longest first', () => {
    const later = mute({ starts_at: 8 * HOUR, ends_at: 20 * HOUR });
    const [short, long] = [mute({ ends_at: 6 * HOUR }), mute({ ends_at: 9 * HOUR })];
    expect(muteOf([later, short, long], incident, now)).toBe(long);
    expect(muteOf([later], incident, now)).toBe(later);
    expect(activeMuteOf([later, short], incident, now)).toBe(short);
    expect(activeMuteOf([later], incident, now)).toBeNull();
  });

  it('describe what they cover', () => {
    expect(coverage(mute({}))).toBe('every rule of the project');
    expect(coverage(mute({ rule: 'r' }))).toBe('the whole rule');
    expect(coverage(mute({ rule: 'r', group: { name: 'checkout' } }))).toBe('only checkout');
  });

  it('are listed with a preview, which ignores them', () => {
    const preview = { muted_evaluations: 3, evaluations: 10 };
    const notes = muteNotes([mute({ ends_at: 4e15 })], preview);
    expect(notes[0]).toContain('covered 3 of 10 evaluations');
    expect(notes[1]).toContain('every rule of the project): load test. The preview ignores this mute.');
    expect(muteNotes([], { ...preview, muted_evaluations: 0 })).toEqual([]);
  });
});

describe('a skipped group', () => {
  it('has its reason in words', () => {
    const group = { name: 'cart' };
    const few = { group, reason: 'too_few_samples', evaluations: 4, samples: 12 } as const;
    expect(reasonOf(few, 100)).toEqual({ name: 'cart', reason: 'Too few samples: 12 (minimum 100)', evaluations: 4 });
    expect(reasonOf({ ...few, base_samples: 3 }, 100).reason).toBe('Too few samples: 12, base 3 (minimum 100)');
    expect(reasonOf({ ...few, reason: 'no_base' }, 100).reason).toBe('No base: no samples to compare with');
    const app = { ...few, group: { app_id: 'shop' }, reason: 'no_base' } as const;
    expect(reasonOf(app, 100).reason).toBe('No base: fewer than two versions have enough samples');
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

  it('leaves out secrets that the reader did not enter', () => {
    const change = toChange(channelForm(saved), false);
    expect(Object.keys(change)).not.toContain('url');
    expect(Object.keys(change)).not.toContain('kind');
    expect(Object.keys(change)).not.toContain('password');
  });

  it('removes secrets only on request', () => {
    const forget = { ...channelForm(saved), forget: true };
    expect(toChange(forget, false)).toMatchObject({ signing_key: null, username: null, password: null });
    expect(toChange({ ...forget, kind: 'slack' }, false)).not.toHaveProperty('signing_key');
  });

  it('sends mail to several addresses, and then has no URL', () => {
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
