// The measures that compare an install with all installs. Pure.

import type { Signal } from '../api/query';

export interface Judged {
  signal: Signal;
  measure: string;
  label: string;
  where?: Record<string, string>;
}

export const JUDGED: Judged[] = [
  { signal: 'frame_windows', measure: 'jank_share', label: 'Time in jank' },
  { signal: 'frame_windows', measure: 'frozen_share', label: 'Frozen frames' },
  { signal: 'janks', measure: 'mean_ms', label: 'Mean length of a stall' },
  { signal: 'page_loads', measure: 'total_p75_ms', label: 'Page loads (p75)' },
  { signal: 'app_starts', measure: 'p75_ms', label: 'Cold starts (p75)', where: { kind: 'cold' } },
  { signal: 'requests', measure: 'failed_share', label: 'Failed requests' },
  { signal: 'traffic', measure: 'bytes_per_install', label: 'Traffic per install' },
  { signal: 'metrics', measure: 'p75', label: 'Memory in use (p75)', where: { name: 'memory_used_bytes' } },
  { signal: 'sdk_health', measure: 'overhead_us_per_install', label: 'SDK cost per install' },
];

/** A value is unusual if it is at least this multiple of the value of all installs. */
export const UNUSUAL = 2;

export function isUnusual(own: number | null, all: number | null): boolean {
  return own !== null && all !== null && all > 0 && own / all >= UNUSUAL;
}
