// Judges jank groups of two versions: whether the rate per hour of use changed, and whether a group is new.

import { queryTable, valueOf, type TableAnswer } from '../api/query';
import type { Filters } from '../navigation/filters';
import { ENOUGH } from '../versions/minimum_samples';
import type { Evidence } from '../versions/change';
import { SIGNIFICANCE, holm, rateP } from '../versions/rate_test';
import type { HoursOfUse } from './rates';

/** The janks of a group on both sides, and the installs that had them. */
export interface GroupSides {
  id: string;
  title: string;
  count: number;
  baseCount: number;
  installs: number;
  baseInstalls: number;
}

export interface JudgedJank extends Evidence, Omit<GroupSides, 'baseInstalls'> {
  significant: boolean;
  few: boolean;
  /** No stored jank of the base version, or from before the incident, is in the group, although the base had enough use. */
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
  return withNew(judge(answer, use), everIn(filters, [filters.baseVersion]), signal);
}

/** Marks the groups that no jank in `before` has. */
export async function withNew(judged: Judged[], before: Filters, signal: AbortSignal): Promise<JudgedJank[]> {
  const missing = judged.filter((one) => one.baseCount === 0 && one.significant && !one.few);
  const known = await groupsIn(before, [...new Set(missing.map((one) => one.id))], signal);
  return judged.map((one) => ({ ...one, isNew: missing.includes(one) && !known.has(one.id) }));
}

type Judged = Omit<JudgedJank, 'isNew'>;

/** Exported for its test. */
export function judge(answer: TableAnswer, use: HoursOfUse): Judged[] {
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
  return judgeSides(groups, use);
}

export function judgeSides(groups: GroupSides[], use: HoursOfUse): Judged[] {
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

/** The whole store before a time: all versions, or the given versions. Keeps only the filter by app. */
export function everIn({ project, chosen }: Filters, versions: string[], to = new Date()): Filters {
  return {
    project,
    range: { kind: 'absolute', from: new Date(to.getTime() - WHOLE_STORE_MS), to },
    chosen: {
      ...(chosen.app_id && { app_id: chosen.app_id }),
      ...(versions.length > 0 && { app_version: versions }),
    },
    baseVersion: '',
  };
}

/** The groups with a jank in `everything`, among the given ids. */
async function groupsIn(everything: Filters, ids: string[], signal: AbortSignal): Promise<Set<string>> {
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
