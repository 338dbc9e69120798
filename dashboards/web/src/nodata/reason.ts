// Determines why a page is empty, and what the user can do about it. Pure.

import type { Signal } from '../api/query';
import { RELATIVE_RANGES, relativeLength, type TimeRange } from '../navigation/time_range';

export interface Facts {
  /** The time of the latest data of any signal, accurate to one step of its series. `null` if no data arrived for a year. */
  lastOfProject: Date | null;
  /** Like `lastOfProject`, but for this signal only. */
  lastOfSignal: Date | null;
  /** Whether the signal has data in the period without filters. */
  isInPeriod: boolean;
  /** Whether a filter is set. */
  isFiltered: boolean;
  /** The setting that keeps devices from sending the signal, as text. Empty if no setting does. */
  switchedOff: string;
}

export type Reason = 'empty_project' | 'never_sent' | 'other_period' | 'filtered' | 'other_choice';

export function reasonFor({ lastOfProject, lastOfSignal, isInPeriod, isFiltered }: Facts): Reason {
  if (isInPeriod) return isFiltered ? 'filtered' : 'other_choice';
  if (lastOfSignal) return 'other_period';
  return lastOfProject ? 'never_sent' : 'empty_project';
}

/**
 * The shortest preset period that includes `last` or, without such a preset, a period around `last`. `step` is the precision of `last`, in
 * milliseconds.
 */
export function periodWith(last: Date, step: number, now: Date): TimeRange {
  const enough = RELATIVE_RANGES.find(({ text }) => now.getTime() - (relativeLength(text) ?? 0) <= last.getTime());
  if (enough) return { kind: 'relative', text: enough.text };
  const to = new Date(Math.min(now.getTime(), last.getTime() + step));
  return { kind: 'absolute', from: new Date(to.getTime() - Math.max(step, 7 * 86_400_000)), to };
}

/** The start of the last step that has a value. `times` are in seconds. */
export function lastStep(times: number[], values: (number | null)[]): Date | null {
  const place = values.findLastIndex((value) => (value ?? 0) > 0);
  return place < 0 ? null : new Date(times[place]! * 1000);
}

type Json = Record<string, unknown>;

/** Signals whose default sampling rate is 0. */
const OFF_BY_DEFAULT = ['recompositions'];
const SAMPLED: Partial<Record<Signal, string>> = {
  spans: 'spans',
  requests: 'spans',
  janks: 'janks',
  frame_windows: 'frame_windows',
  page_loads: 'page_loads',
  page_requests: 'page_loads',
  metrics: 'metrics',
  recompositions: 'recompositions',
};

/** The setting of the remote config that switches a signal off. Empty if there is none, or if an override sets the rate for some devices. */
export function switchedOff(configuration: unknown, signal: Signal): string {
  const { base = {}, overrides = [] } = (configuration ?? {}) as { base?: Json; overrides?: Json[] };
  if (base.enabled === false) return 'enabled is false.';
  const sampling = (base.sampling ?? {}) as Json;
  if (sampling.session_rate === 0 && signal !== 'traffic') return 'sampling.session_rate is 0.';
  const key = SAMPLED[signal];
  if (!key) return '';
  const some = overrides.some((one) => key in (((one.patch as Json)?.sampling ?? {}) as Json));
  if (some) return '';
  if (key === 'spans') return spansOff(base, sampling);
  if (sampling[key] === 0) return `sampling.${key} is 0.`;
  const isDefault = sampling[key] === undefined && OFF_BY_DEFAULT.includes(key);
  return isDefault ? `sampling.${key} is 0 by default.` : '';
}

function spansOff(base: Json, sampling: Json): string {
  if ((base.tracing as Json)?.enabled === false) return 'tracing.enabled is false.';
  const spans = (sampling.spans ?? {}) as Json;
  const named = (spans.overrides ?? []) as Json[];
  return spans.default === 0 && named.every((one) => one.rate === 0) ? 'sampling.spans.default is 0.' : '';
}
