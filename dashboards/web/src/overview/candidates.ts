// Candidates for regressions between two versions: spans, page loads, frames, memory, app starts, traffic and jank groups.

import { applicable, ignored } from '../api/applicable';
import { isAborted } from '../api/problem';
import { queryTable, valueOf, type Question, type TableRow } from '../api/query';
import { activeIn } from '../format/affected';
import { judgedJanks, type JudgedJank } from '../jank/group_changes';
import { BY } from '../jank/groups';
import { hoursOfUse, perHour, type HoursOfUse } from '../jank/rates';
import type { Filters } from '../navigation/filters';
import { addressOf, comparing, only } from '../navigation/links';
import type { VersionPair } from '../versions/version_order';
import { tested } from '../versions/change_tests.svelte';
import { ENOUGH_SAMPLES } from '../versions/minimum_samples';
import { worstFirst, type Candidate, type Ranked } from './worst_first';

/** A candidate before the active installs are known. */
type Found = Omit<Candidate, 'active'>;

interface Kind {
  name: string;
  question: Question;
  /** The measure that counts measurements. By default, `samples`. */
  samples?: string;
  measure: string;
  shown: string;
  unit: string;
  least: number;
  label: (keys: string[]) => string;
  href: (keys: string[], filters: Filters) => string;
}

const KINDS: Kind[] = [
  {
    name: 'Span',
    question: {
      signal: 'spans',
      by: ['name'],
      measures: ['samples', 'installs', 'p75_us'],
      order: '-samples',
      limit: 1000,
    },
    measure: 'p75_us',
    shown: 'p75',
    unit: 'us',
    least: 1000,
    label: ([name]) => name!,
    href: ([name], filters) => addressOf('/spans', filters, { name: name! }),
  },
  {
    name: 'Page load',
    question: {
      signal: 'page_loads',
      by: ['page'],
      measures: ['samples', 'installs', 'total_p75_ms'],
      order: '-samples',
      limit: 500,
    },
    measure: 'total_p75_ms',
    shown: 'total, p75',
    unit: 'ms',
    least: 10,
    label: ([page]) => page!,
    href: ([page], filters) => addressOf('/page-loads', only(filters, 'page', page!)),
  },
  {
    name: 'Frames',
    question: {
      signal: 'frame_windows',
      by: ['page'],
      measures: ['samples', 'installs', 'delay_ms_per_minute'],
      order: '-samples',
      limit: 500,
    },
    measure: 'delay_ms_per_minute',
    shown: 'delay per minute',
    unit: 'ms',
    least: 20,
    label: ([page]) => page!,
    href: ([page], filters) => addressOf('/frames', only(filters, 'page', page!)),
  },
  {
    name: 'Memory',
    question: {
      signal: 'metrics',
      by: ['page'],
      measures: ['samples', 'installs', 'p75'],
      order: '-samples',
      limit: 500,
      where: { name: 'memory_used_bytes' },
    },
    measure: 'p75',
    shown: 'used, p75',
    unit: 'bytes',
    least: 1_000_000,
    label: ([page]) => page!,
    href: ([page], filters) => addressOf('/resources', only(filters, 'page', page!), { metric: 'memory_used_bytes' }),
  },
  {
    name: 'App start',
    question: { signal: 'app_starts', by: ['kind'], measures: ['samples', 'installs', 'p75_ms'] },
    measure: 'p75_ms',
    shown: 'p75',
    unit: 'ms',
    least: 10,
    label: ([kind]) => `${kind} start`,
    href: ([kind], filters) => addressOf('/app-starts', filters, kind ? { kind } : {}),
  },
  {
    name: 'Traffic',
    question: {
      signal: 'traffic',
      by: ['source'],
      measures: ['installs', 'bytes_per_install'],
      order: '-installs',
      limit: 100,
    },
    // Traffic is not sampled, and the test has one value per install, so installs are counted instead of samples.
    samples: 'installs',
    measure: 'bytes_per_install',
    shown: 'per install',
    unit: 'bytes',
    least: 100_000,
    label: ([source]) => `Traffic from ${source}`,
    href: (_, filters) => addressOf('/traffic', filters),
  },
  {
    name: 'Traffic',
    question: {
      signal: 'traffic',
      by: ['source'],
      measures: ['installs', 'failed_share'],
      order: '-installs',
      limit: 100,
    },
    samples: 'installs',
    measure: 'failed_share',
    shown: 'of requests',
    unit: 'share',
    least: 0.001,
    label: ([source]) => `Failed requests to ${source}`,
    href: (_, filters) => addressOf('/traffic', filters, { of: 'failed' }),
  },
];

const JANKS: Question = {
  signal: 'janks',
  by: BY,
  measures: ['count', 'installs'],
  order: '-count',
  limit: 500,
  where: { not_a_cause: 'false' },
};

/** The changes between two versions, the worst first. */
export async function changes(filters: Filters, pair: VersionPair, signal: AbortSignal): Promise<Ranked> {
  const compared = comparing(filters, pair);
  const [found, janks, use, active] = await Promise.all([
    Promise.all(KINDS.map((kind) => ofKind(kind, compared, signal))),
    queryTable(compared, JANKS, signal),
    hoursOfUse(compared, signal),
    activeInstalls(compared, signal),
  ]);
  const groups = await judgedJanks(compared, janks, use, signal);
  const all = [
    ...found.flat(),
    ...groups.map((group, place) => ofJank(group, ownerOf(janks.rows[place]), use, compared)),
  ];
  const { installs = null, basis } = active ?? {};
  return { ...worstFirst(all.map((one) => ({ ...one, active: installs }))), basis };
}

/** The active installs of the version, over the compared periods. `null` if batches lack the dimension of a filter. */
async function activeInstalls(
  filters: Filters,
  signal: AbortSignal,
): Promise<{ installs: number | null; basis: string } | null> {
  if (ignored(filters, 'usage').length > 0) return null;
  const answer = await queryTable(filters, { signal: 'usage', measures: ['installs'] }, signal);
  return { installs: answer.rows[0]?.values[0] ?? null, basis: activeIn(answer.from, answer.to, filters) };
}

async function ofKind(kind: Kind, compared: Filters, signal: AbortSignal): Promise<Found[]> {
  const filters = applicable(compared, kind.question.signal);
  const answer = await queryTable(filters, kind.question, signal);
  const asked = { ...kind.question, measures: [kind.measure] };
  // The API has no better direction for metrics. More memory is worse.
  const measures = answer.measures.map((one) => ({ ...one, better: 'lower' as const }));
  const tests = await tested(filters, asked, { ...answer, measures }, signal).catch(unlessAborted);
  const samples = kind.samples ?? 'samples';
  const isFew = (row: TableRow, of: 'values' | 'base') =>
    (valueOf(answer, row, samples, of) ?? 0) < ENOUGH_SAMPLES.ranked;
  return answer.rows
    .filter((row) => row.keys[0] !== '')
    .map((row) => ({
      kind: kind.name,
      name: kind.label(row.keys),
      measure: kind.shown,
      unit: kind.unit,
      value: valueOf(answer, row, kind.measure),
      base: valueOf(answer, row, kind.measure, 'base'),
      installs: valueOf(answer, row, 'installs') ?? 0,
      few: isFew(row, 'values') || isFew(row, 'base'),
      significant: tests?.get(JSON.stringify(row.keys))?.get(kind.measure) ?? null,
      least: kind.least,
      href: kind.href(row.keys, compared),
    }));
}

/** Turns a failed test into `null`, because a change without a test result is not ranked. */
function unlessAborted(error: unknown): null {
  if (isAborted(error)) throw error;
  return null;
}

const ownerOf = (row: TableRow | undefined) => row?.keys[BY.indexOf('owner')] ?? '';

/** Compares janks per hour of use, because a version with more use has more janks. */
function ofJank(group: JudgedJank, owner: string, use: HoursOfUse, filters: Filters): Found {
  return {
    kind: 'Jank',
    owner,
    name: group.title || 'Stacks without a name',
    measure: 'per hour',
    unit: 'per_hour',
    value: perHour(group.count, use.hours),
    base: perHour(group.baseCount, use.baseHours),
    installs: group.installs,
    few: group.few,
    significant: group.significant,
    isNew: group.isNew,
    least: 0,
    href: addressOf(`/jank/${group.id}`, filters),
  };
}
