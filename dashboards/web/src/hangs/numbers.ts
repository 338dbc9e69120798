// Hangs per hour of use, the share of installs with a hang, and the share of sessions that ended in a kill. The numbers come from
// three signals, so the browser divides and tests them.

import { applicable } from '../api/applicable';
import { queryTable, valueOf, type Question, type TableAnswer, type TableRow } from '../api/query';
import { HOUR_MS } from '../jank/rates';
import type { Filters } from '../navigation/filters';
import { bothVersions } from '../versions/both_versions';
import { ENOUGH } from '../versions/minimum_samples';
import type { Evidence } from '../versions/change';
import { SIGNIFICANCE, rateP, type Rate } from '../versions/rate_test';

export type Where = Record<string, string | string[]>;

/** The counts of one side of a comparison, or of one version. */
export interface Counts {
  hangs: number;
  installsWithHang: number;
  kills: number;
  sessionsWithKill: number;
  installsWithKill: number;
  hours: number;
  installs: number;
  sessions: number;
}

export interface Numbers {
  now: Counts;
  /** Missing if there is no comparison. */
  base?: Counts;
}

/** Which hangs are counted. */
export interface Selection {
  /** The filter by duration or end. */
  length: Where;
  /** All other filters of janks. These filters also apply to kills. */
  causes: Where;
}

/** Loads the counts: with `byVersion`, one entry per version; without it, one entry with an empty key. */
export async function hangNumbers(
  filters: Filters,
  { length, causes }: Selection,
  signal: AbortSignal,
  { byVersion = false } = {},
): Promise<Map<string, Numbers>> {
  const compare = !byVersion;
  const by = byVersion ? ['app_version'] : [];
  const versions = byVersion ? bothVersions(filters) : undefined;
  const ask = ({ where, ...question }: Question) =>
    queryTable(
      applicable(filters, question.signal),
      { ...question, by, compare, limit: 200, where: { ...where, ...versions } },
      signal,
    );
  const [hangs, kills, frames, usage] = await Promise.all([
    ask({ signal: 'janks', measures: ['count', 'installs'], where: { ...causes, ...length } }),
    ask({ signal: 'janks', measures: ['count', 'sessions', 'installs'], where: { ...causes, ended: 'killed' } }),
    ask({ signal: 'frame_windows', measures: ['duration_ms'] }),
    ask({ signal: 'usage', measures: ['installs', 'sessions'] }),
  ]);
  const keys = new Set([hangs, kills, frames, usage].flatMap((answer) => answer.rows.map(keyOf)));
  const isCompared = compare && filters.baseVersion !== '';
  const all = { hangs, kills, frames, usage };
  return new Map(
    [...keys].map((key) => [
      key,
      {
        now: countsOf(all, key, 'values'),
        ...(isCompared && { base: countsOf(all, key, 'base') }),
      },
    ]),
  );
}

const keyOf = (row: TableRow) => row.keys[0] ?? '';

function countsOf(
  { hangs, kills, frames, usage }: Record<'hangs' | 'kills' | 'frames' | 'usage', TableAnswer>,
  key: string,
  side: 'values' | 'base',
): Counts {
  const of = (answer: TableAnswer, measure: string) => {
    const row = answer.rows.find((one) => keyOf(one) === key);
    return row ? (valueOf(answer, row, measure, side) ?? 0) : 0;
  };
  return {
    hangs: of(hangs, 'count'),
    installsWithHang: of(hangs, 'installs'),
    kills: of(kills, 'count'),
    sessionsWithKill: of(kills, 'sessions'),
    installsWithKill: of(kills, 'installs'),
    hours: of(frames, 'duration_ms') / HOUR_MS,
    installs: of(usage, 'installs'),
    sessions: of(usage, 'sessions'),
  };
}

/** A rate on the page: its cases, the affected installs, and the divisor. */
export interface HangRate {
  id: 'per_hour' | 'affected' | 'killed';
  label: string;
  unit: 'per_hour' | 'share';
  hint: string;
  rate: (counts: Counts) => Rate;
}

export const RATES: HangRate[] = [
  {
    id: 'per_hour',
    label: 'Hangs per hour of use',
    unit: 'per_hour',
    hint: 'hours in which frames were measured',
    rate: ({ hangs, installsWithHang, hours }) => ({ count: hangs, installs: installsWithHang, exposure: hours }),
  },
  {
    id: 'affected',
    label: 'Installs with a hang',
    unit: 'share',
    hint: 'of the installs that sent data',
    rate: ({ installsWithHang, installs }) => ({
      count: installsWithHang,
      installs: installsWithHang,
      exposure: installs,
    }),
  },
  {
    id: 'killed',
    label: 'Sessions that ended in a kill',
    unit: 'share',
    hint: 'the process ended during a stall',
    rate: ({ sessionsWithKill, installsWithKill, sessions }) => ({
      count: sessionsWithKill,
      installs: installsWithKill,
      exposure: sessions,
    }),
  },
];

/** `null` if there was no use. */
export function rateOf({ count, exposure }: Rate): number | null {
  return exposure > 0 ? count / exposure : null;
}

/** Tests the change of a rate. As for jank groups, one side with enough installs is sufficient. */
export function evidenceOf(rate: HangRate, { now, base }: Numbers): Evidence {
  if (!base) return {};
  const [head, before] = [rate.rate(now), rate.rate(base)];
  const few = Math.max(head.installs, before.installs) < ENOUGH.janks || head.exposure <= 0 || before.exposure <= 0;
  return { few, significant: rateP(head, before) < SIGNIFICANCE };
}
