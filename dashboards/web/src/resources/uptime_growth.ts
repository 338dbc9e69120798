// Whether a metric grows the longer an app runs, as memory does that is never given back. Pure.

/** As the API names them, in order. */
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
  /** How many samples it stands on, and of how many installs. */
  count: number;
  installs: number;
}

export interface Growth {
  /** From the first bucket to the last, relative to the first. */
  rise: number;
  from: string;
  to: string;
  /** It rises from bucket to bucket, and enough to look into. */
  isLeak: boolean;
}

/** Fewer samples than this are no ground for a suspicion. */
const FEWEST_SAMPLES = 30;
/** One install with a long run is an anecdote. */
const FEWEST_INSTALLS = 5;
const LEAST_BUCKETS = 3;
const LEAST_RISE = 0.1;
/** A bucket may lie this much below the one before and still be part of a rise. */
const SLACK = 0.02;

/** `null` when there are not enough buckets to say anything. */
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

/** Only what is used up can leak: a battery that falls or frames that rise are something else. */
export function canLeak(metric: string): boolean {
  return (
    /memory|heap|threads|objects|files|handles|native|graphics/.test(metric) && !/free|limit|share|percent/.test(metric)
  );
}
