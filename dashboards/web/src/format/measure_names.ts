// How the measures of the API are called on the screen.

const NAMES: Record<string, string> = {
  count: 'Count',
  installs: 'Installs',
  sessions: 'Sessions',
  duration_ms: 'Time observed',
  frames_drawn: 'Frames',
  frames_dropped: 'Dropped frames',
  dropped_share: 'Dropped',
  slow_share: 'Slow frames',
  frozen_share: 'Frozen frames',
  jank_ms: 'Time in jank',
  delay_ms: 'Delay',
  jank_share: 'Time in jank',
  delay_ms_per_minute: 'Delay per minute',
  fps: 'Frames per second',
  longest_drop: 'Longest drop',
  sum_ms: 'Time lost',
  mean_ms: 'Mean',
  completed_share: 'Completed',
  failed_share: 'Failed',
  offset_p50_ms: 'Starts after (p50)',
};

export function measureName(measure: string): string {
  const percentile = /^(?:(t[123]|total)_)?p(\d\d)_[mu]s$/.exec(measure);
  if (percentile)
    return [percentile[1]?.replace(/^t/, (t) => t.toUpperCase()), `p${percentile[2]}`].filter(Boolean).join(' ');
  return NAMES[measure] ?? measure.replaceAll('_', ' ');
}
