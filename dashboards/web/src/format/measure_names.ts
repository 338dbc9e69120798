// The display names of the API's measures.

const NAMES: Record<string, string> = {
  count: 'Count',
  installs: 'Installs',
  sessions: 'Sessions',
  duration_ms: 'Time observed',
  frames_drawn: 'Frames',
  frames_dropped: 'Dropped frames',
  dropped_share: 'Dropped',
  slow_share: 'Slow frames',
  slow_start_share: 'Slow starts',
  frozen_share: 'Frozen frames',
  jank_ms: 'Time in jank',
  delay_ms: 'Delay',
  jank_share: 'Time in jank',
  anr_sessions: 'Sessions with an ANR',
  anr_share: 'Sessions with an ANR',
  delay_ms_per_minute: 'Delay per minute',
  fps: 'Frames per second',
  longest_drop: 'Longest drop',
  sum_ms: 'Time lost',
  mean_ms: 'Mean',
  completed_share: 'Completed',
  failed_share: 'Failed',
  sum: 'Total',
  sum_us: 'Total time',
  main_thread_share: 'On main thread',
  error_share: 'Errors',
  late_share: 'Late',
  bytes: 'Bytes',
  tx_bytes: 'Sent',
  rx_bytes: 'Received',
  failed_requests: 'Failed requests',
  bytes_per_install: 'Per install',
  wire_bytes: 'Uploaded',
  upload_bytes: 'Uploaded',
  queue_bytes: 'Waiting',
  skewed_share: 'Clock corrected',
  overhead_us: 'Own time',
  overhead_us_per_install: 'Own time per install',
  offset_p50_ms: 'Starts after (p50)',
};

export function measureName(measure: string): string {
  const percentile = /^(?:(t[123]|total)_)?p(\d\d)(?:_[mu]s)?$/.exec(measure);
  if (percentile)
    return [percentile[1]?.replace(/^t/, (t) => t.toUpperCase()), `p${percentile[2]}`].filter(Boolean).join(' ');
  const words = measure.replace(/_[mu]s$/, '').replaceAll('_', ' ');
  return NAMES[measure] ?? words.charAt(0).toUpperCase() + words.slice(1);
}
