// The events that a timeline leaves out, in words. Pure.

import { grouped, listed } from '../format/units';
import type { SessionTimeline } from './queries';

const WORDS: [keyof SessionTimeline['left_out'], string, string][] = [
  ['janks', 'jank', 'janks'],
  ['frame_windows', 'frame window', 'frame windows'],
  ['page_loads', 'page load', 'page loads'],
  ['app_starts', 'app start', 'app starts'],
  ['spans', 'span', 'spans'],
  ['requests', 'request', 'requests'],
  ['recompositions', 'recomposition', 'recompositions'],
  ['metrics', 'sample of further metrics', 'samples of further metrics'],
  ['log', 'line of the log', 'lines of the log'],
];

/** A text such as `100 spans and 3 requests`. Empty if nothing is left out. */
export function leftOutText(left: SessionTimeline['left_out']): string {
  const parts = WORDS.filter(([kind]) => left[kind] > 0).map(
    ([kind, one, many]) => `${grouped(left[kind])} ${left[kind] === 1 ? one : many}`,
  );
  return listed(parts);
}
