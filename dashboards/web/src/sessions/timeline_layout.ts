// Computes the positions of a session's events: a lane per kind, with rows for overlapping events. Pure: the canvas only paints.

import { metricLabel, metricUnit, splitName } from '../format/measures';
import { format } from '../format/units';
import { kindName } from '../spans/kinds';
import { micros } from '../traces/waterfall_layout';
import type { SessionTimeline } from './queries';
import { visits } from './visits';

export type Kind =
  'page' | 'app_start' | 'page_load' | 'frames' | 'jank' | 'main_span' | 'span' | 'request' | 'recomposition' | 'log';

export interface Item {
  /** Stays the same after each refresh. */
  id: string;
  kind: Kind;
  /** Microseconds since the epoch. */
  start: number;
  end: number;
  label: string;
  /** Further text in the row of the table. */
  detail: string;
  page: string;
  /** The row in its lane. */
  row: number;
  /** A failure, a frozen frame or an ANR. */
  isBad: boolean;
  /** The height of a bar of frames, from 0 to 1. */
  share?: number;
  /** The labels and values of its details. */
  facts: [string, string][];
  links: Links;
}

/** The ids behind the links of an item. */
export interface Links {
  group?: string;
  trace?: string;
  span?: string;
  name?: string;
  /** The kind of an app start. */
  start?: string;
}

export interface Lane {
  kind: Kind;
  title: string;
  items: Item[];
  rows: number;
}

export interface Series {
  name: string;
  label: string;
  unit: string;
  points: { at: number; value: number; min: number; max: number }[];
  least: number;
  most: number;
}

export interface Layout {
  from: number;
  to: number;
  lanes: Lane[];
  series: Series[];
}

export const LANES: { kind: Kind; title: string; noun: string }[] = [
  { kind: 'page', title: 'Pages', noun: 'Page' },
  { kind: 'app_start', title: 'App starts', noun: 'App start' },
  { kind: 'page_load', title: 'Page loads', noun: 'Page load' },
  { kind: 'frames', title: 'Frames', noun: 'Frames' },
  { kind: 'jank', title: 'Janks', noun: 'Jank' },
  { kind: 'main_span', title: 'Spans on the main thread', noun: 'Span on the main thread' },
  { kind: 'span', title: 'Other spans', noun: 'Span' },
  { kind: 'request', title: 'Requests', noun: 'Request' },
  { kind: 'recomposition', title: 'Recompositions', noun: 'Recomposition' },
  { kind: 'log', title: 'Log', noun: 'Log line' },
];

/** The maximum number of rows in a lane. Further overlapping events share the last row. */
const MOST_ROWS = 6;
/** The maximum number of metrics that have a line. */
const MOST_SERIES = 6;

export const nounOf = (kind: Kind) => LANES.find((lane) => lane.kind === kind)!.noun;

export function layOut(session: SessionTimeline): Layout {
  const all = itemsOf(session);
  const lanes = LANES.flatMap(({ kind, title }) => {
    const items = all.filter((item) => item.kind === kind).toSorted((a, b) => a.start - b.start || b.end - a.end);
    name(items);
    return items.length > 0 ? [{ kind, title, items, rows: pack(items) }] : [];
  });
  const series = seriesOf(session);
  const from = Math.min(...all.map((item) => item.start), ...series.map((one) => one.points[0]!.at));
  const to = Math.max(...all.map((item) => item.end), ...series.map((one) => one.points.at(-1)!.at));
  return Number.isFinite(from)
    ? { from, to: Math.max(to, from + 1000), lanes, series }
    : { from: 0, to: 1, lanes, series };
}

/** Gives items of the same kind and start different ids. */
function name(items: Item[]) {
  const seen = new Map<string, number>();
  for (const item of items) {
    const id = `${item.kind}.${item.start}`;
    const before = seen.get(id) ?? 0;
    seen.set(id, before + 1);
    item.id = before > 0 ? `${id}.${before}` : id;
  }
}

/** Puts each item into the first free row, in order of their starts. Returns the number of rows. */
function pack(items: Item[]): number {
  const free: number[] = [];
  for (const item of items) {
    const place = free.findIndex((end) => end <= item.start);
    item.row = place >= 0 ? place : Math.min(free.length, MOST_ROWS - 1);
    free[item.row] = Math.max(free[item.row] ?? 0, item.end);
  }
  return Math.max(1, free.length);
}

function itemsOf(session: SessionTimeline): Item[] {
  return [
    ...visits(session).map((visit) => item('page', visit, { label: visit.page, page: visit.page })),
    ...session.app_starts.map(startItem),
    ...session.page_loads.map(loadItem),
    ...session.frame_windows.map(framesItem),
    ...session.janks.map(jankItem),
    ...session.spans.map((span) => spanItem(span, span.on_main_thread ? 'main_span' : 'span')),
    ...session.requests.map(requestItem),
    ...session.recompositions.map((redraws) =>
      item('recomposition', lasting(redraws.start, redraws.window_ms * 1000), {
        label: redraws.function,
        detail: `${format(redraws.count)} times`,
        page: redraws.page,
        facts: [['Cause', redraws.cause]],
      }),
    ),
    ...session.log.map((line) =>
      item('log', lasting(line.time, 0), {
        label: line.message,
        facts: [['Source', line.source === 'span' ? 'an event of a span' : 'the log before a jank']],
      }),
    ),
  ];
}

const lasting = (start: string, us: number) => ({ start: micros(start), end: micros(start) + us });

function item(kind: Kind, { start, end }: { start: number; end: number }, more: Partial<Item>): Item {
  const blank = {
    id: '',
    kind,
    start,
    end,
    label: '',
    detail: '',
    page: '',
    row: 0,
    isBad: false,
    facts: [],
    links: {},
  };
  return { ...blank, ...more };
}

function startItem(start: SessionTimeline['app_starts'][number]): Item {
  return item('app_start', lasting(start.start, start.duration_ms * 1000), {
    label: `${start.kind} start`,
    page: start.page,
    facts: start.phases.map((phase) => [phase.name, format(phase.duration_ms, 'ms')]),
    links: { start: start.kind },
  });
}

function loadItem(load: SessionTimeline['page_loads'][number]): Item {
  const requests = load.requests.map(
    (one) => `${one.path} (${one.status || 'no response'}, ${format(one.duration_ms, 'ms')})`,
  );
  return item('page_load', lasting(load.start, load.total_ms * 1000), {
    label: load.page,
    detail: [load.launch, load.outcome].filter(Boolean).join(', '),
    page: load.page,
    isBad: load.outcome === 'aborted',
    facts: [
      ['T1, first element', format(load.t1_ms, 'ms')],
      ['T2, requests', format(load.t2_ms, 'ms')],
      ['T3, final draw', format(load.t3_ms, 'ms')],
      ['Network', load.network],
      ['Requests', requests.join(', ')],
    ],
  });
}

function framesItem(window: SessionTimeline['frame_windows'][number]): Item {
  const slow = window.frames_drawn > 0 ? window.slow_frames / window.frames_drawn : 0;
  return item('frames', lasting(window.start, window.duration_ms * 1000), {
    label: `${format(window.slow_frames)} of ${format(window.frames_drawn)} frames slow`,
    detail: window.frozen_frames > 0 ? `${format(window.frozen_frames)} frozen` : '',
    page: window.page,
    isBad: window.frozen_frames > 0,
    share: slow,
    facts: [
      ['Slow frames', format(slow, 'share')],
      ['Frozen frames', format(window.frozen_frames)],
      ['Dropped frames', `${format(window.frames_dropped)}, at most ${format(window.longest_drop)} in a row`],
      ['Time in jank', format(window.jank_ms, 'ms')],
      ['Refresh rate', window.refresh_hz > 0 ? `${window.refresh_hz} Hz` : ''],
    ],
  });
}

function jankItem(jank: SessionTimeline['janks'][number]): Item {
  return item('jank', lasting(jank.start, jank.duration_ms * 1000), {
    label: jank.title || 'Stack without a name',
    detail: jank.kind === 'anr' ? 'ANR' : '',
    page: jank.page,
    isBad: true,
    facts: [
      ['Category', jank.category],
      ['Culprit', jank.culprit],
      ['Ended', jank.ended === 'killed' ? 'when the process was killed' : 'normally'],
    ],
    links: { group: jank.group_id ?? undefined },
  });
}

function spanItem(span: SessionTimeline['spans'][number], kind: Kind): Item {
  return item(kind, lasting(span.start, span.duration_us), {
    label: splitName(span.name).short || '(no name)',
    detail: [kindName(span.kind), span.thread, span.status === 'error' ? 'failed' : ''].filter(Boolean).join(', '),
    page: span.page,
    isBad: span.status === 'error',
    facts: [
      ['Thread', span.on_main_thread ? `${span.thread} (main thread)` : span.thread],
      ['Status', span.status],
    ],
    links: { trace: span.trace_id, span: span.span_id, name: span.name },
  });
}

function requestItem(request: SessionTimeline['requests'][number]): Item {
  const status = Number(request.http_status) || 0;
  const where = `${request.host}${request.path}`;
  return {
    ...spanItem(request, 'request'),
    label: [request.method, where].filter(Boolean).join(' ') || splitName(request.name).short,
    detail: [request.http_status, request.thread].filter(Boolean).join(', '),
    isBad: request.status === 'error' || status >= 400,
    facts: [
      ['Status code', request.http_status],
      ['Thread', request.thread],
      ['Status', request.status],
    ],
  };
}

function seriesOf(session: SessionTimeline): Series[] {
  const order = ['memory', 'cpu', 'battery'];
  const rank = (name: string) =>
    (order.findIndex((one) => name.startsWith(one)) + order.length + 1) % (order.length + 1);
  return session.metrics
    .filter((metric) => metric.points.length > 0)
    .toSorted((a, b) => rank(a.name) - rank(b.name))
    .slice(0, MOST_SERIES)
    .map(({ name, points }) => ({
      name,
      label: metricLabel(name),
      unit: metricUnit(name),
      points: points.map((point) => ({ ...point, at: micros(point.time) })),
      least: points.reduce((least, point) => Math.min(least, point.min), Infinity),
      most: points.reduce((most, point) => Math.max(most, point.max), -Infinity),
    }));
}
