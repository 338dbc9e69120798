// What may have got worse: spans, pages, frames of pages, starts and groups of janks, of one version and the one before.

import { queryTable, valueOf, type Question, type TableAnswer, type TableRow } from '../api/query';
import type { Filters } from '../navigation/filters';
import { addressOf, comparing, only } from '../navigation/links';
import type { VersionPair } from '../versions/version_order';
import { ENOUGH, ENOUGH_SAMPLES } from '../versions/enough';
import type { Candidate } from './worst_first';

const HOUR_MS = 3_600_000;

interface Kind {
  name: string;
  question: Question;
  /** The measure that says on how much it stands, where the server does not leave out what stands on little. */
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
      atLeastSamples: ENOUGH_SAMPLES.ranked,
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
      atLeastSamples: ENOUGH_SAMPLES.ranked,
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
      atLeastSamples: ENOUGH_SAMPLES.ranked,
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
      atLeastSamples: ENOUGH_SAMPLES.ranked,
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
    question: { signal: 'app_starts', by: ['kind'], measures: ['count', 'installs', 'p75_ms'] },
    // Starts are not sampled.
    samples: 'count',
    measure: 'p75_ms',
    shown: 'p75',
    unit: 'ms',
    least: 10,
    label: ([kind]) => `${kind} start`,
    href: (_, filters) => addressOf('/resources', filters, { tab: 'starts' }),
  },
];

const JANKS: Question = {
  signal: 'janks',
  by: ['group_id', 'title'],
  measures: ['count', 'installs'],
  order: '-count',
  limit: 500,
  where: { not_a_cause: 'false' },
};

export async function candidates(filters: Filters, pair: VersionPair, signal: AbortSignal): Promise<Candidate[]> {
  const compared = comparing(filters, pair);
  const [answers, janks, use] = await Promise.all([
    Promise.all(KINDS.map((kind) => queryTable(compared, kind.question, signal))),
    queryTable(compared, JANKS, signal),
    queryTable(compared, { signal: 'frame_windows', measures: ['duration_ms'] }, signal),
  ]);
  return [
    ...KINDS.flatMap((kind, place) => ofKind(kind, answers[place]!, compared)),
    ...ofJanks(janks, use.rows[0]?.values[0] ?? 0, use.rows[0]?.base?.[0] ?? 0, compared),
  ];
}

function ofKind(kind: Kind, answer: TableAnswer, filters: Filters): Candidate[] {
  const few = (row: TableRow, of: 'values' | 'base') =>
    kind.samples !== undefined && (valueOf(answer, row, kind.samples, of) ?? 0) < ENOUGH_SAMPLES.ranked;
  return answer.rows
    .filter((row) => row.keys[0] !== '' && !few(row, 'values') && !few(row, 'base'))
    .map((row) => ({
      kind: kind.name,
      name: kind.label(row.keys),
      measure: kind.shown,
      unit: kind.unit,
      value: valueOf(answer, row, kind.measure),
      base: valueOf(answer, row, kind.measure, 'base'),
      installs: valueOf(answer, row, 'installs') ?? 0,
      baseInstalls: valueOf(answer, row, 'installs', 'base') ?? 0,
      enough: 0,
      least: kind.least,
      href: kind.href(row.keys, filters),
    }));
}

/** Janks per hour of use: a version that is used more has more of them. */
function ofJanks(answer: TableAnswer, useMs: number, baseUseMs: number, filters: Filters): Candidate[] {
  const rate = (count: number, ms: number) => (ms > 0 ? (count * HOUR_MS) / ms : null);
  return answer.rows.map((row) => {
    const [count, baseCount] = [valueOf(answer, row, 'count') ?? 0, valueOf(answer, row, 'count', 'base') ?? 0];
    return {
      kind: 'Jank',
      name: row.keys[1] || 'Stacks without a name',
      measure: 'per hour',
      unit: 'per_hour',
      value: rate(count, useMs),
      base: rate(baseCount, baseUseMs),
      installs: valueOf(answer, row, 'installs') ?? 0,
      baseInstalls: valueOf(answer, row, 'installs', 'base') ?? 0,
      enough: ENOUGH.janks,
      mayBeNew: true,
      least: 0,
      href: addressOf(`/jank/${row.keys[0]!}`, filters),
    };
  });
}
