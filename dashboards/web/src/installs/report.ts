// The address of a report: one file with everything that a session or an install sent, and the logs of its stalls. Pure.

import type { Filters } from '../navigation/filters';
import { bounds } from '../navigation/time_range';

export function reportAddress(filters: Filters, which: Record<string, string>, now = new Date()): string {
  const { from, to } = bounds(filters.range, now);
  const query = new URLSearchParams({ ...which, from: from.toISOString(), to: to.toISOString() });
  return `/api/v1/projects/${encodeURIComponent(filters.project)}/report?${query}`;
}
