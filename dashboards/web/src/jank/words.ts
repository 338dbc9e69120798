// The values of the dimensions of janks, in words. Pure.

import { format } from '../format/units';

/** The steps of the dimension `duration`, shortest first, with their labels. */
export const STEPS: [step: string, label: string][] = [
  ['under_250ms', 'under 250 ms'],
  ['250ms_500ms', '250–500 ms (micro hang)'],
  ['500ms_2s', '500 ms–2 s (hang)'],
  ['2s_5s', '2–5 s (severe hang)'],
  ['over_5s', '5 s or longer (ANR)'],
];

export function stepLabel(step: string): string {
  return STEPS.find(([name]) => name === step)?.[1] ?? (step || '(none)');
}

export function endLabel(ended: string): string {
  return ended === 'killed' ? 'process killed' : ended || '(none)';
}

/** `5x300ms` → `5 × over 300 ms`. Other clients than the SDKs report no strategy. */
export function strategyLabel(strategy: string): string {
  const [, count, ms] = /^(\d+)x(\d+)ms$/.exec(strategy) ?? [];
  return count ? strategyText(Number(count), Number(ms)) : strategy || '(none)';
}

export function strategyText(count: number, thresholdMs: number): string {
  return count > 0 ? `${count} × over ${format(thresholdMs, 'ms')}` : '(none)';
}
