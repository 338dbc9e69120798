// Outcomes of events, from the counts of the server and of devices. Pure.

import { valueOf, type TableAnswer } from '../api/query';

export interface Loss {
  outcome: string;
  reason: string;
  signal: string;
  count: number;
}

/** `outcomes` is grouped by outcome, reason and signal, `drops` by signal and reason. */
export function losses(outcomes: TableAnswer, drops: TableAnswer): Loss[] {
  const server = outcomes.rows.map((row) => {
    const [outcome = '', reason = '', signal = ''] = row.keys;
    return { outcome, reason, signal, count: valueOf(outcomes, row, 'count') ?? 0 };
  });
  const devices = drops.rows.map((row) => {
    const [signal = '', reason = ''] = row.keys;
    return { outcome: 'device', reason, signal, count: valueOf(drops, row, 'count') ?? 0 };
  });
  return [...server, ...devices];
}

export interface SignalFate {
  signal: string;
  stored: number;
  duplicate: number;
  rejected: number;
  dead_letter: number;
  device: number;
  /** The share of events that were not stored: rejected, kept aside or dropped on devices. */
  lostShare: number | null;
}

export function bySignal(found: Loss[]): SignalFate[] {
  const fates = new Map<string, SignalFate>();
  for (const { signal, outcome, count } of found) {
    const fate =
      fates.get(signal) ??
      ({
        signal,
        stored: 0,
        duplicate: 0,
        rejected: 0,
        dead_letter: 0,
        device: 0,
        lostShare: null,
      } satisfies SignalFate);
    fates.set(signal, fate);
    if (outcome in fate) fate[outcome as 'stored'] += count;
  }
  for (const fate of fates.values()) {
    const lost = fate.rejected + fate.dead_letter + fate.device;
    const all = lost + fate.stored;
    fate.lostShare = all > 0 ? lost / all : null;
  }
  return [...fates.values()].toSorted((a, b) => b.stored - a.stored);
}

/** Groups losses by outcome and reason, with the affected signals. Losses come first. */
export function byReason(found: Loss[]): (Omit<Loss, 'signal'> & { signals: string[] })[] {
  const reasons = new Map<string, Omit<Loss, 'signal'> & { signals: string[] }>();
  for (const { outcome, reason, signal, count } of found) {
    const key = `${outcome}/${reason}`;
    const sum = reasons.get(key) ?? { outcome, reason, count: 0, signals: [] };
    sum.count += count;
    sum.signals.push(signal);
    reasons.set(key, sum);
  }
  const rank = (outcome: string) => ['erased', 'duplicate', 'stored'].indexOf(outcome);
  return [...reasons.values()].toSorted((a, b) => rank(a.outcome) - rank(b.outcome) || b.count - a.count);
}

export function sumOf(found: Loss[], outcome: string): number {
  return found.filter((one) => one.outcome === outcome).reduce((sum, one) => sum + one.count, 0);
}
