// One session in which the events of an incident happened.

import type { Filters } from '../navigation/filters';
import { askSessions } from '../sessions/queries';
import { askSpans } from '../traces/queries';
import type { Evidence } from './incident';
import type { Where } from '../jank/queries';

export interface Example {
  session: string;
  /** The time of an event in the session. */
  at: string;
  device: string;
  /** The span whose duration is nearest to the number of the incident. */
  span?: { trace: string; id: string; us: number };
}

/** Signals whose events belong to a session. */
const IN_SESSIONS = ['spans', 'frame_windows', 'janks', 'page_loads', 'metrics', 'app_starts', 'recompositions'];

export async function exampleOf(
  { metric, numbers, unit }: Evidence,
  filters: Filters,
  where: Where,
  signal: AbortSignal,
): Promise<Example | null> {
  if (metric.signal === 'spans' && unit === 'us' && typeof numbers.value === 'number') {
    const lists = Object.fromEntries(Object.entries(where).map(([name, value]) => [name, [value].flat()]));
    const found = await askSpans(filters, { where: lists, nearUs: numbers.value, limit: 1 }, signal);
    const one = found.spans[0];
    if (!one) return null;
    const span = { trace: one.trace_id, id: one.span_id, us: one.duration_us };
    return { session: one.session_id, at: one.start, device: one.device_model, span };
  }
  if (!IN_SESSIONS.includes(metric.signal)) return null;
  const asked = { where: { ...filters.chosen, ...where }, signal: metric.signal, limit: 1 };
  const one = (await askSessions(filters, asked, signal)).sessions[0];
  return one ? { session: one.session_id, at: one.last, device: one.device_model } : null;
}
