// The numbers of the cards of the overview. Each signal needs one query.

import { queryTable, valueOf, type Question, type Signal, type TableAnswer } from '../api/query';
import { applicable } from '../api/applicable';
import { withValues, type Filters } from '../navigation/filters';
import { comparing } from '../navigation/links';
import { tested } from '../versions/change_tests.svelte';
import type { VersionPair } from '../versions/version_order';

export interface Health {
  answers: Record<HealthSignal, TableAnswer>;
  /** `null` if the version has no such measurement. */
  get: (of: HealthSignal, measure: string, version: string) => number | null;
}

const QUESTIONS = {
  usage: { signal: 'usage', measures: ['sessions', 'installs'], isTested: false },
  frames: {
    signal: 'frame_windows',
    measures: ['duration_ms', 'slow_share', 'frozen_share', 'frames_drawn', 'installs'],
    isTested: true,
  },
  // Not tested by the server, because the rate has two signals. The browser tests this rate.
  janks: { signal: 'janks', measures: ['count', 'installs'], where: { not_a_cause: 'false' }, isTested: false },
  anrs: {
    signal: 'janks',
    measures: ['count', 'sessions', 'installs'],
    where: { not_a_cause: 'false', kind: 'anr' },
    isTested: false,
  },
  loads: { signal: 'page_loads', measures: ['count', 'total_p75_ms', 'installs'], isTested: true },
  starts: {
    signal: 'app_starts',
    measures: ['count', 'samples', 'p50_ms', 'p75_ms', 'installs'],
    where: { kind: 'cold' },
    isTested: true,
  },
  spans: { signal: 'spans', measures: ['count', 'error_share', 'installs'], isTested: true },
} as const satisfies Record<
  string,
  { signal: Signal; measures: readonly string[]; where?: Record<string, string>; isTested: boolean }
>;

export type HealthSignal = keyof typeof QUESTIONS;

/** The numbers of the latest version and the previous version, over the periods that the filters compare. */
export async function health(filters: Filters, pair: VersionPair, signal: AbortSignal): Promise<Health> {
  const compared = comparing(filters, pair);
  const answers = await everyAnswer((question) => queryTable(applicable(compared, question.signal), question, signal));
  return {
    answers,
    get(of, measure, version) {
      const row = answers[of].rows[0];
      return row ? valueOf(answers[of], row, measure, version === pair.latest ? 'values' : 'base') : null;
    },
  };
}

/** The numbers of every version in use, for the sparklines of the cards. */
export async function history(filters: Filters, pair: VersionPair, signal: AbortSignal): Promise<Health> {
  const all = withValues({ ...filters, baseVersion: '' }, 'app_version', []);
  const ofApp = pair.app ? withValues(all, 'app_id', [pair.app]) : all;
  const answers = await everyAnswer((question) =>
    queryTable(
      applicable(ofApp, question.signal),
      {
        ...question,
        measures: question.measures?.filter((one) => one !== 'installs'),
        by: ['app_version'],
        limit: 200,
      },
      signal,
    ),
  );
  return {
    answers,
    get(of, measure, version) {
      const row = answers[of].rows.find((one) => one.keys[0] === version);
      return row ? valueOf(answers[of], row, measure) : null;
    },
  };
}

/** Whether the changes on the cards are significant, by signal and measure. */
export async function healthTests(filters: Filters, pair: VersionPair, { answers }: Health, signal: AbortSignal) {
  const compared = comparing(filters, pair);
  const names = Object.keys(QUESTIONS) as HealthSignal[];
  const found = await Promise.all(
    names.map(async (name) => {
      if (!QUESTIONS[name].isTested) return null;
      const question = asQuestion(name);
      return tested(applicable(compared, question.signal), question, answers[name], signal);
    }),
  );
  return (of: HealthSignal, measure: string) => found[names.indexOf(of)]?.get('[]')?.get(measure) ?? null;
}

function asQuestion(name: HealthSignal): Question {
  const question = QUESTIONS[name];
  const where = 'where' in question ? question.where : undefined;
  return { signal: question.signal, measures: [...question.measures], where };
}

async function everyAnswer(
  ask: (question: Question) => Promise<TableAnswer>,
): Promise<Record<HealthSignal, TableAnswer>> {
  const names = Object.keys(QUESTIONS) as HealthSignal[];
  const answers = await Promise.all(names.map((name) => ask(asQuestion(name))));
  return Object.fromEntries(names.map((name, place) => [name, answers[place]!])) as Record<HealthSignal, TableAnswer>;
}
