// Jank groups. Names and numbers need two queries, because a query has at most three dimensions.

import { api, ask } from '../api/client';
import { queryTable, type Measure, type Question, type TableAnswer, type TableRow } from '../api/query';
import { withLater, type Later } from '../breakdown/later_measures';
import type { Filters } from '../navigation/filters';
import type { Where } from './queries';

export interface Group {
  id: string;
  title: string;
  owner: string;
  row: TableRow;
}

export interface Names {
  category: string;
  culprit: string;
}

export interface Groups {
  answer: TableAnswer;
  groups: Group[];
}

/** The dimensions of groups. */
export const BY = ['group_id', 'title', 'owner'];
const MEASURES = ['count', 'installs', 'sum_ms', 'p95_ms'];
/** The measures without counts of installs and without distributions, which take three quarters of the time of a query. */
const QUICK = ['count', 'sum_ms'];
const SLOW: Measure[] = [
  { name: 'installs', unit: 'count', better: 'lower' },
  { name: 'p95_ms', unit: 'ms', better: 'lower' },
];
/** The maximum number of values of one filter in a query. */
const MOST_ASKED = 200;

interface Asked {
  where: Where;
  order: string;
  limit: number;
}

/**
 * Groups with their numbers. `groupNames` loads the names separately, so that the numbers do not wait. With `isQuick`, `slowMeasures` loads
 * the slow numbers, unless a comparison or the order needs them at once.
 */
export async function jankGroups(
  filters: Filters,
  { isQuick = false, ...asked }: Asked & { isQuick?: boolean },
  signal: AbortSignal,
): Promise<Groups> {
  const isSplit = isQuick && !filters.baseVersion && QUICK.includes(asked.order.replace(/^-/, ''));
  const question: Question = { signal: 'janks', by: BY, measures: isSplit ? QUICK : MEASURES, ...asked };
  const answer = await queryTable(filters, question, signal);
  const groups = answer.rows.map((row) => {
    const [id = '', title = '', owner = ''] = row.keys;
    return { id, title: title || 'Stacks without a name', owner, row };
  });
  return { answer, groups };
}

/** The numbers that `jankGroups` left out. `null` if there are none. */
export async function slowMeasures(
  filters: Filters,
  { answer, groups }: Groups,
  { where, order }: Asked,
  signal: AbortSignal,
): Promise<TableAnswer | null> {
  const measures = SLOW.map(({ name }) => name).filter((name) => !answer.measures.some((one) => one.name === name));
  if (measures.length === 0 || groups.length === 0) return null;
  // In the order of the groups: the limit then leaves out none of them.
  const question = { signal: 'janks' as const, by: BY, measures, order, limit: 1000, where: known(groups, where) };
  return queryTable(filters, question, signal);
}

/** Adds the slow numbers to groups. */
export function withSlow(data: Groups, later: Later): Groups {
  const answer = withLater(data.answer, later, SLOW);
  return { answer, groups: data.groups.map((group, place) => ({ ...group, row: answer.rows[place]! })) };
}

/** The filters that select known groups. */
function known(groups: Group[], where: Where): Where {
  const ids = [...new Set(groups.map((one) => one.id))];
  if (ids.length > MOST_ASKED) return where;
  // Leaves out the filter by status, because the groups are already known.
  const { group_status: _, ...rest } = where;
  return { ...rest, group_id: ids };
}

/** The answer behind groups that may still load. */
export function answerOf(groups: { readonly data: Groups | undefined; readonly busy: boolean }) {
  return {
    get data() {
      return groups.data?.answer;
    },
    get busy() {
      return groups.busy;
    },
  };
}

/** The group that now has the stacks of another group. Symbols and rules move stacks between groups. */
export async function currentGroup(project: string, id: string, signal: AbortSignal): Promise<string> {
  const path = '/api/v1/projects/{project}/janks/groups/{group}';
  const current = await ask(api.GET(path, { params: { path: { project, group: id } }, signal }));
  return current.group_id;
}

/** The category and the culprit of groups, by their ids. */
export async function groupNames(
  filters: Filters,
  { groups, where }: { groups: Group[]; where: Where },
  signal: AbortSignal,
): Promise<Map<string, Names>> {
  if (groups.length === 0) return new Map();
  const answer = await queryTable(
    filters,
    {
      signal: 'janks',
      by: ['group_id', 'category', 'culprit'],
      measures: ['count'],
      limit: 1000,
      compare: false,
      where: known(groups, where),
    },
    signal,
  );
  return new Map(answer.rows.map(({ keys: [id = '', category = '', culprit = ''] }) => [id, { category, culprit }]));
}
