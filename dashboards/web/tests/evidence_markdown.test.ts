import { describe, expect, it } from 'vitest';
import type { TableAnswer } from '../src/api/query';
import type { Incident } from '../src/alerts/incident';
import { incidentEvidence } from '../src/alerts/incident_markdown';
import { codeBlock, escaped, markdown, paragraph } from '../src/evidence/markdown';
import { spanAsMarkdown, type Moved } from '../src/evidence/span_markdown';
import { cellText, tableAsMarkdown } from '../src/evidence/table_markdown';
import { groupEvidence } from '../src/jank/group_markdown';
import type { SessionTimeline } from '../src/sessions/queries';
import { sessionEvidence } from '../src/sessions/session_markdown';
import type { StoredSpan } from '../src/traces/queries';
import { traceEvidence } from '../src/traces/trace_markdown';
import { layOut } from '../src/traces/waterfall_layout';
import type { Filters } from '../src/navigation/filters';
import { changeOf } from '../src/versions/change';

const ORIGIN = 'https://unjank.example.com';
const HOSTILE = [
  '# Heading',
  '- item',
  '1. item',
  '> quote',
  '![x](https://evil.example/x.png)',
  '[pay](https://evil.example)',
  '<img src=x onerror=alert(1)>',
  '<https://evil.example>',
  '@everyone | `code` *b* _i_ ~~s~~ &lt;',
  'first\nsecond\r\n\u2028third',
  'right\u202eto left',
];

describe('hostile names in Markdown', () => {
  it.each(HOSTILE)('%j is plain text on one line', (name) => {
    const text = paragraph(name);
    expect(text).not.toMatch(/[\n\r\u2028\u202e]/);
    // No markup is left without a backslash.
    expect(text.replace(/\\[^\s]/g, '')).not.toMatch(/[`*_[\]<>|~&#]/);
    expect(text).not.toMatch(/^([-+=]|\d+[.)])/);
    expect(text).not.toContain('://');
    expect(text).not.toMatch(/@\w/);
  });

  it('are bounded', () => {
    expect(escaped('x'.repeat(10_000)).length).toBeLessThan(600);
  });

  it('do not end a block of code', () => {
    const block = codeBlock(['at a', '```', '````js', 'at b\n```']).split('\n');
    expect(block[0]).toBe('`````');
    expect(block.at(-1)).toBe('`````');
    expect(block.slice(1, -1).some((line) => /^`{5,}/.test(line))).toBe(false);
    expect(block).toHaveLength(6);
  });

  it('do not break a table or a link', () => {
    const text = markdown(
      {
        title: 'T',
        facts: [],
        table: { head: ['a|b', 'c'], rows: [['x | y', '\n']] },
        links: [
          { label: 'a](https://evil.example)', path: '/spans?name=a)b(c' },
          { label: 'elsewhere', path: 'https://evil.example/' },
        ],
      },
      ORIGIN,
    );
    expect(text).toContain('| a\\|b | c |\n| --- | --- |\n| x \\| y |   |');
    expect(text).toContain(`](${ORIGIN}/spans?name=a%29b%28c)`);
    expect(text).toContain(`[elsewhere](${ORIGIN}/)`);
    expect(text).not.toContain('](https://evil');
  });
});

const EVIDENCE = {
  metric: { signal: 'spans', measure: 'p95_us', by: ['name'] },
  condition: { kind: 'regression', compare: 'same_days', effect: { least_relative: 0.2 } },
  window_minutes: 1440,
  unit: 'us',
  group: { name: 'checkout', app_id: 'shop' },
  numbers: {
    value: 523_000,
    base: 410_000,
    samples: 1234,
    base_samples: 2345,
    relative: 0.2756,
    standardised: 0.25,
    bound: 0.2,
    p_corrected: 0.0000123,
    groups: 12,
    installs: [80, 90],
  },
  sides: { from: 86_400e6, to: 172_800e6, base_from: 0, base_to: 86_400e6, version: '4.12.0', base_version: '4.11.0' },
};
const INCIDENT = {
  id: '0190aaaa-0000-7000-8000-000000000001',
  rule: '0190aaaa-0000-7000-8000-000000000002',
  kind: 'alert',
  title: 'Checkout got slower',
  severity: 'critical',
  owner: 'team <b>',
  state: 'firing',
  started_at: 172_800e6,
  summary: 'p95 of spans for checkout: 523.0 ms, was 410.0 ms',
  link: '/spans?project=shop&from=1970-01-02T00:00:00Z&to=1970-01-03T00:00:00Z&name=checkout',
  group: EVIDENCE.group,
  evidence: EVIDENCE,
} as unknown as Incident;

describe('an incident as Markdown', () => {
  const text = markdown(
    {
      ...incidentEvidence(INCIDENT, 'shop'),
      stack: { title: 'Top stack', lines: ['  at com.shop.Cart.total (Cart.kt:41)'] },
    },
    ORIGIN,
  );

  it('has the numbers of both sides, the periods and the significance', () => {
    expect(text.startsWith('## Checkout got slower\n\n')).toBe(true);
    expect(text).toContain('- **p95 in 4.12.0:** 523 ms (1,234 samples)');
    expect(text).toContain('- **p95 in 4.11.0:** 410 ms (2,345 samples)');
    expect(text).toContain('- **Change:** +28 %, +25 % between like devices');
    expect(text).toContain(
      '- **Significance (p):** \\< 0.001, tested on 80 and 90 installs, corrected for comparing 12 groups',
    );
    expect(text).toMatch(/- \*\*Period:\*\* .*1970/);
    expect(text).toMatch(/- \*\*Compared with:\*\* .*1970/);
    expect(text).toContain('team \\<b\\>');
  });

  it('has the assignee and the comments, whose text stays in a quote', () => {
    const comment = (n: number, text: string) => ({
      id: `${n}`,
      author: 'user:1',
      author_name: 'Ann *',
      text,
      created_at: n,
    });
    const of = (comments: ReturnType<typeof comment>[]) => {
      const assignee = { user: '1', name: 'Bob <b>' };
      return markdown(incidentEvidence({ ...INCIDENT, assignee, comments }, 'shop'), ORIGIN);
    };
    const known = of([comment(0, `Known.\n\n# no heading\n${'x'.repeat(1500)}`), comment(1, '> @all')]);
    expect(known).toContain('- **Assigned to:** Bob \\<b\\>');
    expect(known).toContain(
      '**Comments**\n\n> **Ann \\*, 1 Jan 1970, 00:00**\n>\n> Known.\n>\n> \\# no heading\n>\n> xxx',
    );
    expect(known).toContain(`${'x'.repeat(1500)}\n\n> **Ann`);
    expect(known).toContain('> \\> @\u200ball');
    const many = of(Array.from({ length: 60 }, (_, n) => comment(n, `comment ${n}.`)));
    expect(many).toContain('10 earlier comments are left out.');
    expect(many).not.toContain('comment 9.');
    expect(many).toContain('comment 59.');
    expect(of([])).not.toContain('Comments');
  });

  it('has the rule, the top stack and links', () => {
    expect(text).toContain('Alert when the p95 of checkout where app is shop in 4.12.0 is at least 20 % slower');
    expect(text).toContain('```\n  at com.shop.Cart.total (Cart.kt:41)\n```');
    expect(text).toContain(`- [Incident](${ORIGIN}/incidents/${INCIDENT.id}?project=shop)`);
    expect(text).toContain(
      `(${ORIGIN}/spans?project=shop&from=1970-01-02T00:00:00Z&to=1970-01-03T00:00:00Z&name=checkout)`,
    );
  });
});

const FILTERS: Filters = {
  project: 'shop',
  range: { kind: 'relative', text: '7d' },
  chosen: { app_version: ['4.12.0'] },
  baseVersion: '4.11.0',
};
const PERIODS = {
  from: '2026-11-20T00:00:00Z',
  to: '2026-11-27T00:00:00Z',
  base_from: '2026-11-06T00:00:00Z',
  base_to: '2026-11-13T00:00:00Z',
};
const measure = (name: string, unit: string, better = 'lower') => ({ name, unit, better });

describe('a span and a jank group as Markdown', () => {
  it('have links with a fixed time', () => {
    const answer = {
      ...PERIODS,
      measures: [measure('p95_us', 'us'), measure('count', 'count', 'none')],
      rows: [{ keys: [], values: [523_000, 10], base: [410_000, 20] }],
    } as unknown as TableAnswer;
    const text = spanAsMarkdown('checkout', answer, FILTERS, ORIGIN);
    expect(text).toContain('| Measure | 4.12.0 | 4.11.0 | Change |');
    expect(text).toContain('| p95 | 523 ms | 410 ms | +28 % |');
    const judged = (evidence: object) => spanAsMarkdown('checkout', answer, FILTERS, ORIGIN, undefined, () => evidence);
    expect(judged({ significant: true })).toContain('| p95 | 523 ms | 410 ms | +28 %, worse |');
    expect(judged({ significant: false })).toContain('| +28 %, may be chance |');
    expect(judged({ few: true })).toContain('| 523 ms | 410 ms | few samples |');
    // The period of the numbers, which is not the one that was asked for.
    expect(text).toContain(
      '/spans?project=shop&from=2026-11-20T00%3A00%3A00Z&to=2026-11-27T00%3A00%3A00Z&app_version=4.12.0',
    );
    expect(text).toContain('**Period:** 20 Nov 2026, 00:00 to 27 Nov 2026, 00:00 (UTC)');
    expect(text).toContain('4.11.0, at the same age: 6 Nov 2026, 00:00 to 13 Nov 2026, 00:00 (UTC)');
    expect(text).not.toContain('range=');
  });

  it('name the functions whose time changed, with their owners', () => {
    const answer = { ...PERIODS, measures: [], rows: [] } as unknown as TableAnswer;
    const times = (self: number, main: number, total = self) => ({
      per_traced: { calls: 1, self_us: self, main_thread_us: main, total_us: total, spans: 100 },
      recorded: 100,
      by_time: 0,
    });
    const insert = { ...times(300_000, 300_000), base: times(298_000, 0), p: 0.5, p_main_thread: 1e-9 };
    const checkout = { ...times(10, 10, 900_000), base: times(10, 10, 500_000), p: 0.5, p_main_thread: 0.5 };
    const rows = [
      { name: 'com.example.OrderDao.insert', ...insert },
      { name: 'checkout', ...checkout },
    ];
    const inside = {
      spans: 100,
      traced: 100,
      base_spans: 100,
      base_traced: 100,
      total_us: 9e7,
      rows: rows.map((row) => ({ ...row, base_traced: 100 })),
    };
    const owners = new Map([['com.example.OrderDao.insert', 'team-orders']]);
    const moved = { inside, owners } as unknown as Moved;
    const text = spanAsMarkdown('checkout', answer, FILTERS, ORIGIN, moved);
    expect(text).toContain(
      'OrderDao.insert: moved to the main thread, explains 300 ms of 400 ms of the change per traced span, p \\< 0.001, owner team-orders.',
    );
    expect(spanAsMarkdown('checkout', answer, { ...FILTERS, baseVersion: '' }, ORIGIN, moved)).not.toContain('insert');
  });

  it('compare only janks per hour of use, and only with enough installs', () => {
    const answer = {
      ...PERIODS,
      measures: [
        measure('count', 'count'),
        measure('installs', 'count'),
        measure('sum_ms', 'ms'),
        measure('p95_ms', 'ms'),
      ],
    } as unknown as TableAnswer;
    const row = (installs: number) => ({ keys: [], values: [300, installs, 5000, 40], base: [20, installs, 300, 40] });
    const facts = (installs: number) => ({
      group: { id: '7', title: 'Cart.total', owner: '', row: row(installs) },
      isNew: false,
      answer,
      names: { category: 'io', culprit: 'Cart.total' },
      use: { hours: 1000, baseHours: 100 },
      filters: FILTERS,
      parameters: {},
    });
    const { table } = groupEvidence(facts(20));
    expect(table!.rows[0]).toEqual(['Per hour of use', '0.3', '0.2', '+50 %']);
    // Fifteen times as many janks in a version with ten times as much use.
    expect(table!.rows[1]).toEqual(['Count', '300', '20', '–']);
    expect(groupEvidence(facts(2)).table!.rows[0]).toEqual(['Per hour of use', '0.3', '–', '–']);
  });
});

describe('a table as Markdown', () => {
  it('has what its cells show, and its page', () => {
    const cold = cellText('823 ms', '', changeOf(823, 700, 'lower', 'ms', { significant: true }), '700 ms');
    expect(cold).toBe('823 ms (+18 %, worse, before 700 ms)');
    const few = cellText('12', '3.2 %', changeOf(12, 9, 'lower', 'count', { few: true }), '9');
    expect(few).toBe('12 (3.2 % of active installs; few samples, before 9)');
    expect(cellText('4.12.0', '', null, '–')).toBe('4.12.0');
    const table = { head: ['Version', 'p75'], rows: [['4.12.0', cold]] };
    const facts: [string, string][] = [['Period', 'yesterday']];
    const text = tableAsMarkdown(
      { ...table, title: 'App starts: By version', facts, path: '/app-starts?kind=warm' },
      ORIGIN,
    );
    expect(text).toContain('## App starts: By version\n\n- **Period:** yesterday');
    expect(text).toContain(`| 4.12.0 | ${cold} |`);
    expect(text).toContain(`[Page](${ORIGIN}/app-starts?kind=warm)`);
  });

  it('says how many rows it leaves out', () => {
    const rows = Array.from({ length: 70 }, (_, place) => [`row ${place}`]);
    const text = tableAsMarkdown({ title: 'Spans', head: ['Name'], rows, facts: [], path: '/spans' }, ORIGIN);
    expect(text).toContain('The first 50 of 70 rows.');
    expect(text).not.toContain('row 50');
  });
});

describe('a trace as Markdown', () => {
  const span = (name: string, start: string, ms: number, more: Partial<StoredSpan> = {}) =>
    ({
      ...{ span_id: name, name, kind: 'method', status: 'ok', start, duration_us: ms * 1000, thread: 'main' },
      ...{ on_main_thread: true, app_id: 'shop', app_version: '4.12.0', device_model: 'Pixel 8', os_name: 'android' },
      ...{ session_id: 's-1', page: 'Cart' },
      ...more,
    }) as StoredSpan;
  const spans = [
    span('checkout', '2026-11-20T12:00:00Z', 500),
    span('com.shop.Cart.total', '2026-11-20T12:00:00.100Z', 200, { parent_span_id: 'checkout', status: 'error' }),
  ];
  const seen = { id: '0a', project: 'shop', of: layOut(spans), root: spans[0]!, more: false };
  const text = markdown(traceEvidence(seen), ORIGIN);

  it('has its numbers, its longest spans and fixed links', () => {
    expect(text.startsWith('## Trace checkout\n\n')).toBe(true);
    expect(text).toContain('- **Start:** 20 Nov 2026, 12:00:00 (UTC)');
    expect(text).toContain('- **Failed spans:** 1');
    expect(text).toContain('- **App:** shop 4.12.0');
    expect(text).toContain('| checkout | method | 0 ms | 500 ms | 300 ms | main (main thread) |   |');
    expect(text).toContain('| Cart.total | method | 100 ms | 200 ms | 200 ms | main (main thread) | failed |');
    expect(text).toContain(`](${ORIGIN}/traces/0a?project=shop&from=2026-11-20T12%3A00%3A00Z`);
    expect(text).toContain(`](${ORIGIN}/sessions/s-1?`);
  });

  it('says that spans are missing', () => {
    expect(markdown(traceEvidence({ ...seen, more: true }), ORIGIN)).toContain('too many spans');
  });
});

describe('a session as Markdown', () => {
  const session = {
    ...{ session_id: '5c0c7e0e-6c6b', start: '2026-11-20T12:00:00Z', end: '2026-11-20T12:01:00Z' },
    ...{ last: '2026-11-20T12:01:00Z', device_model: 'Pixel 8', device_class: 'high', os_name: 'android' },
    ...{ os_version: '15', app_version: '4.12.0', build: 41_200, user_id: 'ann', mode: 'production', channel: '' },
    ...{
      config_revision: 3,
      janks: 1,
      jank_ms: 700,
      frames_drawn: 100,
      slow_frames: 25,
      frozen_frames: 0,
      requests: 4,
    },
  } as SessionTimeline['session'];
  const jank = { title: 'slow query', kind: 'anr', start: '2026-11-20T12:00:30Z', duration_ms: 700, page: 'Cart' };
  const text = markdown(
    sessionEvidence({ session, janks: [jank as SessionTimeline['janks'][number]] }, 'shop'),
    ORIGIN,
  );

  it('has its device, its numbers and its janks, but not its user', () => {
    expect(text.startsWith('## Session 5c0c7e0e\n\n')).toBe(true);
    expect(text).toContain('- **Device:** Pixel 8, class high');
    expect(text).toContain('- **Slow frames:** 25 %');
    expect(text).toContain('| 12:00:30 | slow query | ANR | 700 ms | Cart |');
    expect(text).toContain(`](${ORIGIN}/sessions/5c0c7e0e-6c6b?project=shop&from=2026-11-20T12%3A00%3A00Z`);
    expect(text).not.toContain('ann');
  });
});
