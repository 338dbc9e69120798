// Where the spans of a trace stand in a waterfall: a lane a thread, nested spans below what they ran in. Pure: the canvas only paints.

export interface TimedSpan {
  span_id: string;
  parent_span_id?: string | null;
  start: string;
  duration_us: number;
  thread: string;
  on_main_thread: boolean;
}

export interface Bar<S extends TimedSpan> {
  span: S;
  /** Microseconds since the beginning of the trace. */
  start: number;
  end: number;
  /** Among all rows of the waterfall, its lane's heading included. */
  row: number;
  parent: Bar<S> | null;
  children: Bar<S>[];
  /** Not covered by its children on the same thread. */
  selfUs: number;
  /** In the tree of callers, whatever the thread. */
  depth: number;
}

export interface Lane {
  thread: string;
  isMain: boolean;
  /** The row of its heading; its spans begin one below. */
  row: number;
  rows: number;
  spans: number;
  /** Time in which something ran, whatever was nested. */
  busyUs: number;
}

export interface Waterfall<S extends TimedSpan> {
  bars: Bar<S>[];
  lanes: Lane[];
  rows: number;
  durationUs: number;
}

/** Microseconds since the epoch of a time of the API, which has more digits than a `Date` keeps. */
export function micros(time: string): number {
  const fraction = /\.(\d+)/.exec(time)?.[1] ?? '';
  const seconds = Math.floor(new Date(time).getTime() / 1000);
  return seconds * 1e6 + Number(fraction.padEnd(6, '0').slice(0, 6));
}

export function layOut<S extends TimedSpan>(spans: S[]): Waterfall<S> {
  const first = spans.reduce((least, span) => Math.min(least, micros(span.start)), Infinity);
  const bars = spans
    .map<Bar<S>>((span) => {
      const start = micros(span.start) - first;
      const end = start + span.duration_us;
      return { span, start, end, row: 0, parent: null, children: [], selfUs: span.duration_us, depth: 0 };
    })
    .toSorted((a, b) => a.start - b.start || b.end - a.end);
  connect(bars);
  const lanes = byThread(bars);
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
    const same = bar.children.filter((child) => child.span.thread === bar.span.thread);
    bar.selfUs = bar.span.duration_us - covered(same, bar.start, bar.end);
  }
}

/** A device that sends a circle of parents is not followed around it. */
function isBelow<S extends TimedSpan>(bar: Bar<S>, above: Bar<S>): boolean {
  for (let at: Bar<S> | null = bar; at; at = at.parent) if (at === above) return true;
  return false;
}

/** How much of the time from `start` to `end` any of the bars takes; they come in order of their start. */
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

/** The main thread first, then whoever began first. Gives each bar its row. */
function byThread<S extends TimedSpan>(bars: Bar<S>[]): Lane[] {
  const threads = new Map<string, Bar<S>[]>();
  for (const bar of bars) {
    const found = threads.get(bar.span.thread);
    if (found) found.push(bar);
    else threads.set(bar.span.thread, [bar]);
  }
  const isMain = (own: Bar<S>[]) => own.some((bar) => bar.span.on_main_thread);
  const sorted = [...threads].toSorted(([, a], [, b]) => Number(isMain(b)) - Number(isMain(a)));
  let next = 0;
  return sorted.map(([thread, own]) => {
    const row = next;
    // When each row is free again: a span goes below what still runs, and below its parent at any rate.
    const free: number[] = [];
    for (const bar of own) {
      let place =
        bar.parent && bar.parent.span.thread === thread && bar.parent.end > bar.start ? bar.parent.row - row : 0;
      while ((free[place] ?? 0) > bar.start) place += 1;
      free[place] = bar.end;
      bar.row = row + 1 + place;
    }
    next = row + 1 + free.length;
    const busyUs = covered(own, 0, Infinity);
    return { thread, isMain: isMain(own), row, rows: free.length, spans: own.length, busyUs };
  });
}

/** The bar next to one, for the keyboard: its caller, what it called, or its neighbour on the thread. */
export function neighbour<S extends TimedSpan>(bars: Bar<S>[], from: Bar<S>, key: string): Bar<S> | undefined {
  if (key === 'ArrowUp') return from.parent ?? undefined;
  if (key === 'ArrowDown') return from.children[0];
  const step = key === 'ArrowRight' ? 1 : -1;
  return bars[bars.indexOf(from) + step];
}

/** Callers before what they called, for the table. */
export function asTree<S extends TimedSpan>(bars: Bar<S>[]): Bar<S>[] {
  const rows: Bar<S>[] = [];
  const open = bars.filter((bar) => bar.parent === null).toReversed();
  for (let next = open.pop(); next; next = open.pop()) {
    rows.push(next);
    open.push(...next.children.toReversed());
  }
  return rows;
}

/** Round steps for the marks of an axis, about `most` of them. */
export function ticks(from: number, to: number, most: number): number[] {
  const raw = (to - from) / Math.max(1, most);
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = ([1, 2, 5, 10].find((one) => one * power >= raw) ?? 10) * power;
  const found: number[] = [];
  for (let at = Math.ceil(from / step) * step; at <= to && found.length < 100; at += step) found.push(at);
  return found;
}
