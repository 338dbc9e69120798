// Whether a metric grows the longer an app runs, as leaked memory does. Pure.

/** The names of the API, in order. */
export const UPTIMES = ['under_1m', '1m_5m', '5m_15m', '15m_1h', 'over_1h'];

export const UPTIME_LABELS: Record<string, string> = {
  under_1m: 'under 1 min',
  '1m_5m': '1–5 min',
  '5m_15m': '5–15 min',
  '15m_1h': '15–60 min',
  over_1h: 'over 1 h',
};

export interface UptimePoint {
  uptime: string;
  value: number | null;
  /** The numbers of samples and installs behind the value. */
  count: number;
  installs: number;
}

export interface Growth {
  /** The rise from the first bucket to the last, relative to the first. */
  rise: number;
  from: string;
  to: string;
  /** Whether the metric rises from bucket to bucket, and by enough to investigate. */
  isLeak: boolean;
}

/** Buckets with fewer samples are ignored. */
const FEWEST_SAMPLES = 30;
/** Buckets with fewer installs are ignored, because a single long run proves nothing. */
const FEWEST_INSTALLS = 5;
const LEAST_BUCKETS = 3;
const LEAST_RISE = 0.1;
/** A bucket may be this much below the previous one and still be part of a rise. */
const SLACK = 0.02;

/** `null` with too few buckets. */
export function growth(points: UptimePoint[]): Growth | null {
  const used = UPTIMES.flatMap((uptime) => points.filter((point) => point.uptime === uptime)).filter(
    (point): point is UptimePoint & { value: number } =>
      point.value !== null && point.count >= FEWEST_SAMPLES && point.installs >= FEWEST_INSTALLS,
  );
  const [first, last] = [used[0], used.at(-1)];
  if (!first || !last || used.length < 2 || first.value <= 0) return null;
  const rise = (last.value - first.value) / first.value;
  const rises = used.every((point, index) => index === 0 || point.value >= used[index - 1]!.value * (1 - SLACK));
  const isLeak = used.length >= LEAST_BUCKETS && rises && rise >= LEAST_RISE;
  return { rise, from: first.uptime, to: last.uptime, isLeak };
}

/** Only resources can leak. A falling battery level or a rising frame rate is not a leak. */
export function canLeak(metric: string): boolean {
  return (
    /memory|heap|threads|objects|files|handles|native|graphics/.test(metric) && !/free|limit|share|percent/.test(metric)
  );
}
