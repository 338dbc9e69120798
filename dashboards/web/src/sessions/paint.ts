// Paints the lanes of a session on a canvas. `timeline_layout` computes the positions.

import { place, type View } from '../components/zoom';
import { format } from '../format/units';
import { nounOf, type Item, type Kind, type Lane, type Layout, type Series } from './timeline_layout';
import { marks } from './view';

export const AXIS = 22;
const HEAD = 18;
const ROW = 16;
const GAP = 6;
/** The height of lanes with bars or lines of variable height. */
const TALL = 34;

/** A lane or a line with its position on the canvas. */
export interface Strip {
  top: number;
  /** The top of its rows, below its heading. */
  rows: number;
  height: number;
  lane?: Lane;
  series?: Series;
}

export function stripsOf(layout: Layout): { strips: Strip[]; height: number } {
  let top = AXIS + 2;
  const strips: Strip[] = [];
  const add = (rows: number, more: Pick<Strip, 'lane' | 'series'>) => {
    strips.push({ top, rows: top + HEAD, height: HEAD + rows, ...more });
    top += HEAD + rows + GAP;
  };
  for (const lane of layout.lanes) add(lane.kind === 'frames' ? TALL : lane.rows * ROW, { lane });
  for (const series of layout.series) add(TALL, { series });
  return { strips, height: top };
}

const COLOURS: Record<Kind, string> = {
  page: 'series-8',
  app_start: 'series-6',
  page_load: 'series-5',
  frames: 'series-1',
  jank: 'bad',
  main_span: 'series-1',
  span: 'series-3',
  request: 'series-4',
  recomposition: 'series-2',
  log: 'muted',
};

export interface Painting {
  context: CanvasRenderingContext2D;
  width: number;
  height: number;
  shown: View;
  strips: Strip[];
  chosen: Item | undefined;
  isFocused: boolean;
  isDark: boolean;
  colour: (name: string) => string;
}

export function paint(on: Painting) {
  const { context, width, height, shown, strips, colour } = on;
  context.textBaseline = 'middle';
  const ticks = marks(shown, width / 110);
  context.fillStyle = colour('border');
  for (const tick of ticks) context.fillRect(Math.round(place(tick.at, shown, width)), 0, 1, height);
  paintBands(on);
  for (const strip of strips) {
    paintHead(on, strip);
    if (strip.series) paintSeries(on, strip, strip.series);
    else if (strip.lane) paintLane(on, strip, strip.lane);
  }
  context.fillStyle = colour('surface');
  context.fillRect(0, 0, width, AXIS - 2);
  context.fillStyle = colour('muted');
  context.font = '11px system-ui, sans-serif';
  for (const tick of ticks) context.fillText(tick.label, place(tick.at, shown, width) + 4, AXIS / 2);
}

/** Shades all lanes while the main thread was blocked, to show the events at that time. */
function paintBands({ context, width, height, shown, strips, colour }: Painting) {
  context.fillStyle = colour('bad');
  context.globalAlpha = 0.1;
  for (const jank of strips.find(({ lane }) => lane?.kind === 'jank')?.lane?.items ?? []) {
    const [left, right] = [place(jank.start, shown, width), place(jank.end, shown, width)];
    if (right >= 0 && left <= width) context.fillRect(left, AXIS, Math.max(1, right - left), height - AXIS);
  }
  context.globalAlpha = 1;
}

function paintHead({ context, width, shown, colour }: Painting, { top, lane, series }: Strip) {
  context.fillStyle = colour('surface-2');
  context.fillRect(0, top, width, HEAD - 2);
  context.fillStyle = colour('text');
  context.font = '600 11px system-ui, sans-serif';
  const title = lane?.title ?? series!.label;
  context.fillText(title, 6, top + HEAD / 2 - 1);
  const start = context.measureText(title).width + 16;
  context.fillStyle = colour('muted');
  context.font = '11px system-ui, sans-serif';
  context.fillText(lane ? about(lane, shown) : range(series!), start, top + HEAD / 2 - 1);
}

function about({ items }: Lane, shown: View): string {
  const seen = items.filter((item) => item.end >= shown.from && item.start <= shown.to).length;
  return seen === items.length ? String(seen) : `${seen} of ${items.length}`;
}

const range = ({ least, most, unit }: Series) => `${format(least, unit)} to ${format(most, unit)}`;

function paintLane(on: Painting, strip: Strip, lane: Lane) {
  // Thousands of events may share a pixel. Painting one is enough.
  const reached: number[] = [];
  for (const item of lane.items) {
    const [left, right] = ends(item, on);
    if (right < 0 || left > on.width) continue;
    if (item !== on.chosen && right <= (reached[item.row] ?? -1)) continue;
    reached[item.row] = Math.max(reached[item.row] ?? -1, right);
    paintItem(on, strip, item, left, right);
  }
  if (lane.kind === 'log') paintTexts(on, strip, lane);
}

/** Writes the text of each log line beside its mark, and cuts off the text at the next mark. */
function paintTexts(on: Painting, strip: Strip, lane: Lane) {
  const { context, width, colour } = on;
  context.fillStyle = colour('text');
  context.font = '11px system-ui, sans-serif';
  const next: number[] = [];
  for (const item of lane.items.toReversed()) {
    const [left, right] = ends(item, on);
    if (right < 0 || left > width) continue;
    const text = fitted(item.label, (next[item.row] ?? width) - right - 8);
    next[item.row] = left;
    const [top, height] = vertical(item, strip);
    if (text) context.fillText(text, right + 4, top + height / 2);
  }
}

/** The text, cut to a width in pixels. Empty if at most two letters fit. */
function fitted(text: string, width: number): string {
  const letters = Math.floor(width / 6);
  if (letters <= 2) return '';
  return text.length > letters ? `${text.slice(0, letters - 1)}…` : text;
}

/** The left and right edges of an item, in whole pixels and at least two apart. */
function ends(item: Item, { shown, width }: Pick<Painting, 'shown' | 'width'>): [number, number] {
  const left = Math.max(-2, Math.floor(place(item.start, shown, width)));
  return [left, Math.max(left + 2, Math.min(width + 2, Math.round(place(item.end, shown, width)) - 1))];
}

function paintItem(on: Painting, strip: Strip, item: Item, left: number, right: number) {
  const { context, colour } = on;
  const [top, height] = vertical(item, strip);
  context.fillStyle = colour(COLOURS[item.kind]);
  context.globalAlpha = !on.chosen || item === on.chosen || item.kind === 'jank' ? 1 : 0.85;
  context.fillRect(left, top, right - left, height);
  context.globalAlpha = 1;
  if (item.isBad) {
    context.fillStyle = colour(item.kind === 'jank' ? 'text' : 'bad');
    context.fillRect(left, item.kind === 'frames' ? strip.rows : top + height - 3, right - left, 3);
  }
  if (right - left > 34 && item.share === undefined) paintLabel(on, item, [left, right, top, height]);
  if (item !== on.chosen) return;
  context.strokeStyle = colour('text');
  context.lineWidth = on.isFocused ? 2.5 : 1.5;
  context.strokeRect(left - 1, top - 1, right - left + 2, height + 2);
}

function paintLabel({ context, isDark }: Painting, item: Item, [left, right, top, height]: number[]) {
  context.fillStyle = isDark ? '#0e1014' : '#ffffff';
  context.font = '11px system-ui, sans-serif';
  const begin = Math.max(0, left!) + 4;
  const text = fitted(`${item.isBad && item.kind !== 'jank' ? '✕ ' : ''}${item.label}`, right! - begin - 4);
  if (text) context.fillText(text, begin, top! + height! / 2);
}

/** The top and the height of an item. The height of frame bars is the square root of the share of slow frames. */
function vertical(item: Item, strip: Strip): [number, number] {
  if (item.share === undefined) return [strip.rows + item.row * ROW, ROW - 2];
  const height = Math.max(2, Math.sqrt(Math.min(1, item.share)) * (TALL - 4));
  return [strip.rows + TALL - height, height];
}

function paintSeries({ context, width, shown, colour }: Painting, strip: Strip, series: Series) {
  const span = series.most - series.least || 1;
  const y = (value: number) => strip.rows + 3 + (1 - (value - series.least) / span) * (TALL - 6);
  context.strokeStyle = colour('series-3');
  context.lineWidth = 1.5;
  context.beginPath();
  series.points.forEach((point, index) => {
    const at = place(point.at, shown, width);
    if (index === 0) context.moveTo(at, y(point.value));
    else context.lineTo(at, y(point.value));
  });
  context.stroke();
  context.fillStyle = colour('series-3');
  for (const point of series.points) context.fillRect(place(point.at, shown, width) - 1, y(point.value) - 1, 3, 3);
}

/** Finds the item at a position of the canvas: the shortest item if there are several, or the nearest point of a line. */
export function found(
  x: number,
  y: number,
  { strips, shown, width }: Pick<Painting, 'strips' | 'shown' | 'width'>,
): { item?: Item; text: string } | null {
  const strip = strips.find((one) => y >= one.top && y < one.top + one.height + GAP);
  if (strip?.series) return { text: pointAt(x, strip.series, { shown, width }) };
  const row = Math.floor((y - (strip?.rows ?? 0)) / ROW);
  const near = (strip?.lane?.items ?? []).filter((item) => {
    const [left, right] = ends(item, { shown, width });
    return left - 3 <= x && right + 3 >= x && (item.share !== undefined || item.row === row);
  });
  const [item] = near.toSorted((a, b) => a.end - a.start - (b.end - b.start));
  return item ? { item, text: describe(item) } : null;
}

function pointAt(x: number, series: Series, { shown, width }: Pick<Painting, 'shown' | 'width'>): string {
  const far = (point: { at: number }) => Math.abs(place(point.at, shown, width) - x);
  const nearest = series.points.reduce((best, point) => (far(point) < far(best) ? point : best));
  return `${series.label}: ${format(nearest.value, series.unit)}`;
}

export function describe(item: Item): string {
  const lasted = item.end > item.start ? `, ${format(item.end - item.start, 'us')}` : '';
  return `${nounOf(item.kind)}: ${item.label}${lasted}${item.detail ? ` (${item.detail})` : ''}`;
}
