// The thresholds from which lists mark a duration on the main thread. Pure.

export interface Level {
  /** The threshold, in microseconds. */
  from: number;
  label: string;
  severity: 'warn' | 'bad';
}

/** The longest first: a frozen frame, a stall that people notice, and the budget of a frame at 60 per second. */
export const LEVELS: Level[] = [
  { from: 700_000, label: 'frozen', severity: 'bad' },
  { from: 100_000, label: 'stall', severity: 'bad' },
  { from: 16_000, label: 'over a frame', severity: 'warn' },
];

/** Work on other threads delays no frame, so a span needs at least half of its time on the main thread to have a level. */
const MOSTLY = 0.5;

export function levelOf(us: number | null, mainThreadShare: number | null): Level | undefined {
  if (us === null || (mainThreadShare ?? 0) < MOSTLY) return undefined;
  return LEVELS.find(({ from }) => us >= from);
}
