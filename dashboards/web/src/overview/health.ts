// The numbers of a version at a glance: one question a signal, by version, so that the versions before come with it.

import { queryTable, valueOf, type Signal, type TableAnswer } from '../api/query';
import { applicable } from '../api/applicable';
import { withValues, type Filters } from '../navigation/filters';
import type { VersionPair } from '../versions/version_order';

export interface Health {
  /** By version; what was not measured is missing. */
  get: (of: HealthSignal, measure: string, version: string) => number | null;
}

const QUESTIONS = {
  usage: { signal: 'usage', measures: ['sessions', 'installs'] },
  frames: { signal: 'frame_windows', measures: ['duration_ms', 'slow_share', 'frozen_share', 'frames_drawn'] },
  janks: { signal: 'janks', measures: ['count'], where: { not_a_cause: 'false' } },
  anrs: { signal: 'janks', measures: ['count', 'sessions'], where: { not_a_cause: 'false', kind: 'anr' } },
  loads: { signal: 'page_loads', measures: ['count', 'total_p75_ms'] },
  starts: { signal: 'app_starts', measures: ['count', 'p50_ms', 'p75_ms'], where: { kind: 'cold' } },
  spans: { signal: 'spans', measures: ['count', 'error_share'] },
} as const satisfies Record<string, { signal: Signal; measures: readonly string[]; where?: Record<string, string> }>;

export type HealthSignal = keyof typeof QUESTIONS;

export async function health(filters: Filters, pair: VersionPair, signal: AbortSignal): Promise<Health> {
  const all = withValues({ ...filters, baseVersion: '' }, 'app_version', []);
  const ofApp = pair.app ? withValues(all, 'app_id', [pair.app]) : all;
  const names = Object.keys(QUESTIONS) as HealthSignal[];
  const answers = await Promise.all(
    names.map((name) => {
      const question = QUESTIONS[name];
      const where = 'where' in question ? question.where : undefined;
      const asked = {
        signal: question.signal,
        measures: [...question.measures],
        where,
        by: ['app_version'],
        limit: 200,
      };
      return queryTable(applicable(ofApp, question.signal), asked, signal);
    }),
  );
  const found = Object.fromEntries(names.map((name, place) => [name, answers[place]!])) as Record<
    HealthSignal,
    TableAnswer
  >;
  return {
    get(of, measure, version) {
      const row = found[of].rows.find((one) => one.keys[0] === version);
      return row ? valueOf(found[of], row, measure) : null;
    },
  };
}
