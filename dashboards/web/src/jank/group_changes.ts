// Judges jank groups of two versions: whether the rate per hour of use changed, and whether a group is new.

import { queryTable, valueOf, type TableAnswer } from '../api/query';
import type { Filters } from '../navigation/filters';
import { ENOUGH } from '../versions/minimum_samples';
import type { Evidence } from '../versions/change';
import { SIGNIFICANCE, holm, rateP } from '../versions/rate_test';
import type { HoursOfUse } from './rates';

export interface JudgedJank extends Evidence {
  id: string;
  title: string;
  count: number;
  baseCount: number;
  installs: number;
  significant: boolean;
  few: boolean;
  /** No stored jank of the base version is in the group, although the base version had enough use. */
  isNew: boolean;
}

/** The period that covers the whole store: the longest period that a query may have. */
const WHOLE_STORE_MS = 800 * 86_400_000;
/** The maximum number of values of one filter in a query. */
const MOST_ASKED = 200;

/** Judges the rows of an answer that is grouped by `group_id` and has the measures `count` and `installs`. */
export async function judgedJanks(
  filters: Filters,
  answer: TableAnswer,
  use: HoursOfUse,
  signal: AbortSignal,
): Promise<JudgedJank[]> {
  const judged = judge(answer, use);
  const missing = judged.filter((one) => one.baseCount === 0 && one.significant && !one.few);
  const known = await groupsOf(filters, [...new Set(missing.map((one) => one.id))], signal);
  return judged.map((one) => ({ ...one, isNew: missing.includes(one) && !known.has(one.id) }));
}

/** Exported for its test. */
export function judge(answer: TableAnswer, use: HoursOfUse): Omit<JudgedJank, 'isNew'>[] {
  const title = answer.by.indexOf('title');
  const groups = answer.rows.map((row) => {
    const number = (measure: string, side: 'values' | 'base' = 'values') => valueOf(answer, row, measure, side) ?? 0;
    return {
      id: row.keys[answer.by.indexOf('group_id')] ?? '',
      title: title < 0 ? '' : (row.keys[title] ?? ''),
      count: number('count'),
      baseCount: number('count', 'base'),
      installs: number('installs'),
      baseInstalls: number('installs', 'base'),
    };
  });
  const p = groups.map(({ count, baseCount, installs, baseInstalls }) =>
    rateP(
      { count, installs, exposure: use.hours },
      { count: baseCount, installs: baseInstalls, exposure: use.baseHours },
    ),
  );
  const corrected = holm(p);
  // One side with enough installs is sufficient, because the test considers how long the other side was used.
  return groups.map(({ baseInstalls, ...group }, place) => ({
    ...group,
    few: Math.max(group.installs, baseInstalls) < ENOUGH.janks || use.baseHours <= 0 || use.hours <= 0,
    significant: corrected[place]! < SIGNIFICANCE,
  }));
}

/** The groups in which the base version has a jank, in the whole store. Ignores all filters except the app. */
async function groupsOf(filters: Filters, ids: string[], signal: AbortSignal): Promise<Set<string>> {
  const { chosen, baseVersion } = filters;
  const now = new Date();
  const everything: Filters = {
    project: filters.project,
    range: { kind: 'absolute', from: new Date(now.getTime() - WHOLE_STORE_MS), to: now },
    chosen: { ...(chosen.app_id ? { app_id: chosen.app_id } : {}), app_version: [baseVersion] },
    baseVersion: '',
  };
  const found = new Set<string>();
  for (let start = 0; start < ids.length; start += MOST_ASKED) {
    const asked = ids.slice(start, start + MOST_ASKED);
    const where = { group_id: asked };
    const question = { signal: 'janks' as const, by: ['group_id'], measures: ['count'], limit: MOST_ASKED, where };
    const answer = await queryTable(everything, question, signal);
    for (const row of answer.rows) found.add(row.keys[0]!);
  }
  return found;
}
