// Visits of pages. Devices send no such event, so visits are derived from frames and page loads. Pure.

import type { SessionTimeline } from './queries';
import { micros } from '../traces/waterfall_layout';

export interface Visit {
  page: string;
  start: number;
  end: number;
}

/** A pause longer than this begins a new visit: the app was in the background, or nothing was drawn. */
const PAUSE_US = 30e6;

export function visits({ frame_windows, page_loads }: Pick<SessionTimeline, 'frame_windows' | 'page_loads'>): Visit[] {
  const marks = [
    ...frame_windows.map((one) => mark(one.page, one.start, one.duration_ms)),
    ...page_loads.map((one) => mark(one.page, one.start, one.total_ms)),
  ].toSorted((a, b) => a.start - b.start);
  const found: Visit[] = [];
  for (const next of marks) {
    if (!next.page) continue;
    const last = found.at(-1);
    if (last && last.page === next.page && next.start - last.end <= PAUSE_US) last.end = Math.max(last.end, next.end);
    else {
      // A page ends when the next one begins.
      if (last) last.end = Math.min(last.end, next.start);
      found.push(next);
    }
  }
  return found;
}

function mark(page: string, start: string, ms: number): Visit {
  return { page, start: micros(start), end: micros(start) + ms * 1000 };
}
