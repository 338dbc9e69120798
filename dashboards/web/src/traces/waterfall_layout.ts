// Computes the positions of spans in a waterfall: a lane per thread of each app, nested spans below their parents. Pure: the canvas only paints.

export interface TimedSpan {
  span_id: string;
  parent_span_id?: string | null;
  start: string;
  duration_us: number;
  thread: string;
  on_main_thread: boolean;
  /** The app, or the service of OpenTelemetry. Spans without an app id belong to the same app. */
  app_id?: string;
}

export interface Bar<S extends TimedSpan> {
  span: S;
  /** Microseconds since the beginning of the trace. */
  start: number;
  end: number;
  /** The row in the whole waterfall. Headings of lanes count as rows. */
  row: number;
  parent: Bar<S> | null;
  children: Bar<S>[];
  /** The time that no child on the same thread covers. */
  selfUs: number;
  /** The depth in the call tree, across threads. */
  depth: number;
}

export interface Lane {
  /** The name of the app, if the trace has spans of several apps. */
  app: string;
  thread: string;
  isMain: boolean;
  /** The row of the heading of the lane. Spans of the lane begin in the next row. */
  row: number;
  rows: number;
  spans: number;
  /** The time in which at least one span was open. Open spans may have waited. */
  busyUs: number;
}

export interface Waterfall<S extends TimedSpan> {
  bars: Bar<S>[];
  lanes: Lane[];
  rows: number;
  durationUs: number;
}

/** A time of the API in microseconds since the epoch. A `Date` keeps only milliseconds. */
export function micros(time: string): number {
  const fraction = /\.(\d+)/.exec(time)?.[1] ?? '';
  const seconds = Math.floor(new Date(time).getTime() / 1000);
  return seconds * 1e6 + Number(fraction.padEnd(6, '0').slice(0, 6));
}

/** With `isStacked`, each span has its own row, with room for its name. */
export function layOut<S extends TimedSpan>(spans: S[], isStacked = false): Waterfall<S> {
  const first = spans.reduce((least, span) => Math.min(least, micros(span.start)), Infinity);
  const bars = spans
    .map<Bar<S>>((span) => {
      const start = micros(span.start) - first;
      const end = start + span.duration_us;
      return { span, start, end, row: 0, parent: null, children: [], selfUs: span.duration_us, depth: 0 };
    })
    .toSorted((a, b) => a.start - b.start || b.end - a.end);
  connect(bars);
  const lanes = byThread(bars, isStacked);
  return {
    bars,
    lanes,
    rows: lanes.reduce((sum, lane) => sum + 1 + lane.rows, 0),
    durationUs: bars.reduce((most, bar) => Math.max(most, bar.end), 1),
  };
}

function connect<S extends TimedSpan>(bars: Bar<S>[]) {
  const byId = new Map(bars.map((bar) => [bar.span.span_id, bar]));
  for (const bar of bars) {
    const parent = byId.get(bar.span.parent_span_id ?? '');
    if (!parent || parent === bar || isBelow(parent, bar)) continue;
    bar.parent = parent;
    parent.children.push(bar);
  }
  for (const bar of bars) {
    for (let at = bar.parent; at; at = at.parent) bar.depth += 1;
    const same = bar.children.filter((child) => laneOf(child.span) === laneOf(bar.span));
    bar.selfUs = bar.span.duration_us - covered(same, bar.start, bar.end);
  }
}

/** Detects cycles of parents, which a faulty device may send. */
function isBelow<S extends TimedSpan>(bar: Bar<S>, above: Bar<S>): boolean {
  for (let at: Bar<S> | null = bar; at; at = at.parent) if (at === above) return true;
  return false;
}

/** The time between `start` and `end` that at least one bar covers. Bars are in order of their start. */
function covered<S extends TimedSpan>(bars: Bar<S>[], start: number, end: number): number {
  let sum = 0;
  let reached = start;
  for (const bar of bars) {
    const to = Math.min(end, bar.end);
    if (to > reached) {
      sum += to - Math.max(reached, bar.start);
      reached = to;
    }
  }
  return sum;
}

/** Identifies the thread of a span among all apps of a trace. */
function laneOf({ app_id, thread }: TimedSpan): string {
  return JSON.stringify([app_id, thread]);
}

/** Gives each bar its row: the main thread first, then threads by the start of their first span. */
function byThread<S extends TimedSpan>(bars: Bar<S>[], isStacked: boolean): Lane[] {
  const threads = new Map<string, Bar<S>[]>();
  for (const bar of bars) {
    const found = threads.get(laneOf(bar.span));
    if (found) found.push(bar);
    else threads.set(laneOf(bar.span), [bar]);
  }
  const isMain = (own: Bar<S>[]) => own.some((bar) => bar.span.on_main_thread);
  const sorted = [...threads].toSorted(([, a], [, b]) => Number(isMain(b)) - Number(isMain(a)));
  const hasSeveralApps = new Set(bars.map((bar) => bar.span.app_id)).size > 1;
  let next = 0;
  return sorted.map(([lane, own]) => {
    const row = next;
    // The time from which on each row is free. A span is placed below running spans, and always below its parent.
    const free: number[] = [];
    for (const bar of own) {
      let place =
        bar.parent && laneOf(bar.parent.span) === lane && bar.parent.end > bar.start ? bar.parent.row - row : 0;
      if (isStacked) place = free.length;
      while ((free[place] ?? 0) > bar.start) place += 1;
      free[place] = bar.end;
      bar.row = row + 1 + place;
    }
    next = row + 1 + free.length;
    const busyUs = covered(own, 0, Infinity);
    const { thread, app_id } = own[0]!.span;
    const app = hasSeveralApps ? (app_id ?? '') : '';
    return { app, thread, isMain: isMain(own), row, rows: free.length, spans: own.length, busyUs };
  });
}

/** The bar that an arrow key moves to: the caller, the first callee, or the previous or next bar. */
export function neighbour<S extends TimedSpan>(bars: Bar<S>[], from: Bar<S>, key: string): Bar<S> | undefined {
  if (key === 'ArrowUp') return from.parent ?? undefined;
  if (key === 'ArrowDown') return from.children[0];
  const step = key === 'ArrowRight' ? 1 : -1;
  return bars[bars.indexOf(from) + step];
}

/** Sorts callers before their callees, for the table. */
export function asTree<S extends TimedSpan>(bars: Bar<S>[]): Bar<S>[] {
  const rows: Bar<S>[] = [];
  const open = bars.filter((bar) => bar.parent === null).toReversed();
  for (let next = open.pop(); next; next = open.pop()) {
    rows.push(next);
    open.push(...next.children.toReversed());
  }
  return rows;
}

/** The position of a bar's name, in pixels: inside the bar or in free space beside the bar. `null` if there is no room. */
export function labelPlace(
  bar: { left: number; right: number },
  name: number,
  free: { left: number; right: number },
): { at: number; room: number; isInside: boolean } | null {
  const gap = 5;
  const inside = Math.max(bar.left, 0) + gap;
  const within = Math.min(bar.right, free.right) - inside - gap;
  if (within >= name) return { at: inside, room: within, isInside: true };
  const after = free.right - bar.right - 2 * gap;
  if (after >= name) return { at: bar.right + gap, room: after, isInside: false };
  const before = bar.left - free.left - 2 * gap;
  if (before >= name) return { at: bar.left - gap - name, room: before, isInside: false };
  return within >= 18 ? { at: inside, room: within, isInside: true } : null;
}

/** Axis ticks at round steps. Returns about `most` ticks. */
export function ticks(from: number, to: number, most: number): number[] {
  const raw = (to - from) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = ([1, 2, 5, 10].find((one) => one * power >= raw) ?? 10) * power;
  const found: number[] = [];
  for (let at = Math.ceil(from / step) * step; at <= to && found.length < 100; at += step) found.push(at);
  return found;
}
