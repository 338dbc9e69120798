import { describe, expect, it } from 'vitest';
import { readFilters } from '../src/navigation/filters';
import { sessionAddress } from '../src/navigation/links';
import { meanings, type SessionTimeline } from '../src/sessions/queries';
import { compareCommand } from '../src/sessions/compare_command';
import { freshness, isSilent } from '../src/sessions/following';
import { linksOf } from '../src/sessions/item_links';
import { leftOutText } from '../src/sessions/left_out';
import { layOut } from '../src/sessions/timeline_layout';
import { moved, within, zoomed } from '../src/components/zoom';
import { clock, followed, marks } from '../src/sessions/view';
import { visits } from '../src/sessions/visits';

const at = (second: number) => new Date(Date.UTC(2026, 10, 20, 12, 0, second)).toISOString();
const us = (second: number) => Date.UTC(2026, 10, 20, 12, 0, second) * 1000;

const NOTHING = {
  page_loads: [],
  frame_windows: [],
  janks: [],
  spans: [],
  requests: [],
  app_starts: [],
  recompositions: [],
  metrics: [],
  log: [],
} as unknown as SessionTimeline;

const frames = (page: string, start: number, seconds: number, more = {}) => ({
  ...{ page, start: at(start), duration_ms: seconds * 1000, refresh_hz: 60, frames_drawn: 100, frames_dropped: 0 },
  ...{ slow_frames: 25, frozen_frames: 0, longest_drop: 0, jank_ms: 0 },
  ...more,
});

const span = (name: string, start: number, ms: number, more = {}) => ({
  ...{ trace_id: 'a', span_id: name, name, kind: 'manual', start: at(start), duration_us: ms * 1000 },
  ...{ thread: 'main', on_main_thread: true, status: 'ok', page: '' },
  ...more,
});

describe('a search for sessions', () => {
  it('treats an id as a session, an install or a user, and other text as a part of a user id', () => {
    const id = '5C0C7E0E-6c6b-4a3e-8a0e-0f6f8d3b2a11';
    expect(meanings(` ${id} `)).toEqual([
      { session_id: id.toLowerCase() },
      { install_id: id.toLowerCase() },
      { user_id: id },
    ]);
    for (const other of [`{${id}}`, id.replaceAll('-', '')])
      expect(meanings(other).slice(0, 2)).toEqual([{ session_id: id.toLowerCase() }, { install_id: id.toLowerCase() }]);
    expect(meanings('ann@')).toEqual([{ 'contains.user_id': 'ann@' }]);
    expect(meanings('  ')).toEqual([{}]);
  });

  it('leads to a timeline, at the time of an event', () => {
    const filters = readFilters(new URLSearchParams('project=shop&range=30d'));
    expect(sessionAddress(filters, 'x')).toBe('/sessions/x?project=shop&range=30d');
    expect(sessionAddress(filters, 'x', at(1))).toContain('&at=2026-11-20T12%3A00%3A01.000Z');
  });

  it('leads to a span, if others began at the same time', () => {
    const filters = readFilters(new URLSearchParams('project=shop'));
    expect(sessionAddress(filters, 'x', at(1), '0a')).toMatch(/&at=2026\S+&span=0a$/);
  });

  it('gives a command that compares two sessions in the chosen time', () => {
    const filters = readFilters(new URLSearchParams('project=shop&range=1h'));
    const command = compareCommand(filters, 'a', 'b', new Date(at(0)));
    expect(command.replaceAll(/ \\\n {2}/g, ' ')).toBe(
      'unjank compare --base session_id=a --head session_id=b --from 2026-11-20T11:00:00Z --to 2026-11-20T12:00:01Z --project shop',
    );
  });

  it('quotes ids of a crafted link, so that the command runs nothing else', () => {
    const filters = readFilters(new URLSearchParams({ project: '$(b)', range: '1h' }));
    const command = compareCommand(filters, "a'; rm b", '-c\nd', new Date(at(0)));
    expect(command).toContain("--base session_id='a'\\''; rm b' \\\n");
    expect(command).toContain("--head session_id='-c\nd' \\\n");
    expect(command).toContain("--project '$(b)'");
  });
});

describe('visits of pages', () => {
  it('join measurements on the same page, and end when the next page begins', () => {
    const page_loads = [{ page: 'Cart', start: at(9), total_ms: 500 }] as SessionTimeline['page_loads'];
    const frame_windows = [frames('Feed', 5, 5), frames('Feed', 0, 5), frames('', 3, 1), frames('Cart', 10, 5)];
    expect(visits({ page_loads, frame_windows })).toEqual([
      { page: 'Feed', start: us(0), end: us(9) },
      { page: 'Cart', start: us(9), end: us(15) },
    ]);
  });

  it('split after a long pause', () => {
    const frame_windows = [frames('Feed', 0, 5), frames('Feed', 36, 5)];
    expect(visits({ page_loads: [], frame_windows })).toHaveLength(2);
  });
});

describe('the timeline', () => {
  const layout = layOut({
    ...NOTHING,
    frame_windows: [frames('Feed', 0, 10, { frozen_frames: 1 })],
    spans: [
      span('inner', 1, 500),
      span('outer', 0, 3000),
      span('next', 4, 1),
      span('io', 2, 9, { on_main_thread: false }),
    ],
    requests: [
      { ...span('POST /pay', 3, 100), method: 'POST', host: 'api.example.com', path: '/pay', http_status: '503' },
    ],
    metrics: [
      { name: 'zeta', points: [{ time: at(1), value: 1, min: 1, max: 1 }] },
      { name: 'memory_used_bytes', points: [{ time: at(12), value: 2e8, min: 1e8, max: 3e8 }] },
    ],
    log: [
      { time: at(1), message: 'one', source: 'jank' },
      { time: at(1), message: 'two', source: 'jank' },
    ],
  });
  const lane = (kind: string) => layout.lanes.find((one) => one.kind === kind)!;

  it('leads from an app start to the starts of its kind, in the days around it', () => {
    const app_starts = [{ kind: 'warm', page: 'Feed', start: at(3), duration_ms: 800, phases: [] }];
    const starts = layOut({ ...NOTHING, app_starts: app_starts as unknown as SessionTimeline['app_starts'] });
    const [item] = starts.lanes.find((one) => one.kind === 'app_start')!.items;
    const filters = readFilters(new URLSearchParams('project=shop&range=1h'));
    expect(linksOf(item!, filters)).toEqual([
      {
        label: 'App starts',
        href: '/app-starts?project=shop&from=2026-11-19T12%3A00%3A03Z&to=2026-11-21T12%3A00%3A03Z&kind=warm',
      },
    ]);
  });

  it('has a lane per kind of event, and rows where events overlap', () => {
    expect(layout.lanes.map((one) => one.kind)).toEqual(['page', 'frames', 'main_span', 'span', 'request', 'log']);
    expect(lane('main_span').items.map(({ label, row }) => [label, row])).toEqual([
      ['outer', 0],
      ['inner', 1],
      ['next', 0],
    ]);
    expect(lane('main_span').rows).toBe(2);
  });

  it('covers all events and samples', () => {
    expect([layout.from, layout.to]).toEqual([us(0), us(12)]);
    expect(layout.series.map((one) => [one.label, one.least, one.most])).toEqual([
      ['Memory used', 1e8, 3e8],
      ['Zeta', 1, 1],
    ]);
  });

  it('marks failed events, and links to the trace', () => {
    expect(lane('frames').items[0]).toMatchObject({ isBad: true, share: 0.25, detail: '1 frozen' });
    expect(lane('request').items[0]).toMatchObject({
      isBad: true,
      label: 'POST api.example.com/pay',
      links: { trace: 'a' },
    });
    expect(lane('main_span').items.some((item) => item.isBad)).toBe(false);
  });

  it('gives events of the same time different ids, and the same ids after each refresh', () => {
    expect(lane('log').items.map((item) => item.id)).toEqual([`log.${us(1)}`, `log.${us(1)}.1`]);
  });

  it('stays bounded in height with thousands of events at once', () => {
    const spans = Array.from({ length: 5000 }, (_, place) => span(`s${place}`, 0, 1000 + place));
    const [only] = layOut({ ...NOTHING, spans }).lanes;
    expect([only!.items.length, only!.rows]).toEqual([5000, 6]);
  });

  it('of a session without events is empty', () => {
    expect(layOut(NOTHING)).toEqual({ from: 0, to: 1, lanes: [], series: [] });
  });
});

describe('the visible part', () => {
  const whole = { from: 0, to: 100e6 };

  it('stays within the session, and is at least a millisecond long', () => {
    expect(within(whole, -5e6, 10e6)).toEqual({ from: 0, to: 15e6 });
    expect(within(whole, 95e6, 105e6)).toEqual({ from: 90e6, to: 100e6 });
    expect(within(whole, 5e6, 5e6)).toEqual({ from: 5e6, to: 5e6 + 1000 });
    expect(within(whole, 0, 100e6)).toBeNull();
  });

  it('is zoomed around a place and moved', () => {
    expect(zoomed(whole, whole, 0.5)).toEqual({ from: 25e6, to: 75e6 });
    expect(zoomed(whole, { from: 40e6, to: 60e6 }, 0.5, 40e6)).toEqual({ from: 40e6, to: 50e6 });
    expect(moved(whole, { from: 40e6, to: 60e6 }, -0.5)).toEqual({ from: 30e6, to: 50e6 });
  });

  it('follows the end of a growing session, if it shows the end', () => {
    const longer = { from: 0, to: 130e6 };
    expect(followed(whole, { from: 80e6, to: 100e6 }, longer)).toEqual({ from: 110e6, to: 130e6 });
    expect(followed(whole, { from: 20e6, to: 40e6 }, longer)).toEqual({ from: 20e6, to: 40e6 });
    expect(followed(whole, null, longer)).toBeNull();
  });

  it('has ticks at round times of the clock', () => {
    const found = marks({ from: us(3), to: us(58) }, 6);
    expect(found.map((mark) => mark.at)).toEqual([us(10), us(20), us(30), us(40), us(50)]);
    expect(found[0]!.label).toMatch(/^\d\d:\d\d:10$/);
    expect(marks({ from: us(3), to: us(3) + 9000 }, 5)[1]!.label).toMatch(/:03\.002$/);
    expect(clock(us(7) + 12_000, true)).toMatch(/:07\.012$/);
  });
});

describe('a followed session', () => {
  it('shows how long ago its last batch arrived and how old its events were', () => {
    expect(freshness({ received: at(30), end: at(10) }, new Date(at(42)))).toEqual({ agoMs: 12_000, behindMs: 20_000 });
    expect(freshness({ received: at(30), end: at(40) }, new Date(at(20)))).toEqual({ agoMs: 0, behindMs: 0 });
  });

  it('is paused after ten minutes without a batch', () => {
    const after = (ms: number) => new Date(Date.parse(at(0)) + ms);
    expect([isSilent(at(0), after(599_000)), isSilent(at(0), after(601_000))]).toEqual([false, true]);
  });
});

it('lists how many events of each kind are left out', () => {
  const none = { page_loads: 0, frame_windows: 0, janks: 0, spans: 0, requests: 0, app_starts: 0, recompositions: 0 };
  const left = { ...none, metrics: 0, log: 0 };
  expect(leftOutText(left)).toBe('');
  expect(leftOutText({ ...left, spans: 1200, requests: 1, log: 2 })).toBe(
    '1,200 spans, 1 request, and 2 lines of the log',
  );
});
