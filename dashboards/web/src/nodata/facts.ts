// Queries the server for the facts that explain an empty page.

import { applicable } from '../api/applicable';
import { api, ask } from '../api/client';
import { querySeries, queryTable, type Signal } from '../api/query';
import type { Filters } from '../navigation/filters';
import { chosenCount } from '../navigation/filters';
import { lastStep, switchedOff, type Facts } from './reason';

const DAY_MS = 86_400_000;
const YEAR_MS = 366 * DAY_MS;
/** Requests have no roll-up, so the server reads raw spans and does not look back as far. */
const LOOK_BACK_MS: Partial<Record<Signal, number>> = { requests: 31 * DAY_MS };
/** A measure that is above zero if the signal has data. */
const measureOf = (signal: Signal) => (signal === 'traffic' ? 'bytes' : 'count');

export type AskedFacts = Facts & { step: number };

export async function askFacts(filters: Filters, signal: Signal, abort: AbortSignal): Promise<AskedFacts> {
  const now = new Date();
  const unfiltered: Filters = { ...filters, chosen: {}, baseVersion: '' };
  const since = (ms: number): Filters => {
    const range = { kind: 'absolute' as const, from: new Date(now.getTime() - ms), to: now };
    return { ...unfiltered, range };
  };
  const [ofSignal, ofProject, isInPeriod, off] = await Promise.all([
    last(since(LOOK_BACK_MS[signal] ?? YEAR_MS), signal, abort),
    last(since(YEAR_MS), 'usage', abort),
    hasRows(unfiltered, signal, abort),
    whatIsOff(filters.project, signal, abort),
  ]);
  return {
    lastOfSignal: ofSignal.at,
    lastOfProject: ofProject.at ?? ofSignal.at,
    step: ofSignal.step,
    isInPeriod,
    isFiltered: chosenCount(applicable(filters, signal)) > 0,
    switchedOff: off,
  };
}

async function last(filters: Filters, signal: Signal, abort: AbortSignal) {
  const measure = measureOf(signal);
  const { times, series, step_s } = await querySeries(filters, { signal, measures: [measure] }, abort);
  return { at: lastStep(times, series[0]?.values[measure] ?? []), step: step_s * 1000 };
}

async function hasRows(filters: Filters, signal: Signal, abort: AbortSignal): Promise<boolean> {
  const { rows } = await queryTable(filters, { signal, measures: [measureOf(signal)] }, abort);
  return (rows[0]?.values[0] ?? 0) > 0;
}

async function whatIsOff(project: string, signal: Signal, abort: AbortSignal): Promise<string> {
  const params = { path: { project } };
  const { configuration } = await ask(api.GET('/api/v1/projects/{project}/config', { params, signal: abort }));
  return switchedOff(configuration, signal);
}
