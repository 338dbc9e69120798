// Jank groups. Names and numbers need two queries, because a query has at most three dimensions.

import { api, ask } from '../api/client';
import { queryTable, type TableAnswer, type TableRow } from '../api/query';
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

/** Groups with their numbers. `groupNames` loads the names separately, so that the numbers do not wait. */
export async function jankGroups(
  filters: Filters,
  asked: { where: Where; order: string; limit: number },
  signal: AbortSignal,
): Promise<Groups> {
  const question = { signal: 'janks' as const, by: BY, measures: MEASURES, ...asked };
  const answer = await queryTable(filters, question, signal);
  const groups = answer.rows.map((row) => {
    const [id = '', title = '', owner = ''] = row.keys;
    return { id, title: title || 'Stacks without a name', owner, row };
  });
  return { answer, groups };
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
  const ids = [...new Set(groups.map((one) => one.id))];
  // Leaves out the filter by status, because the groups are already known.
  const { group_status: _, ...rest } = where;
  if (ids.length === 0) return new Map();
  const answer = await queryTable(
    filters,
    {
      signal: 'janks',
      by: ['group_id', 'category', 'culprit'],
      measures: ['count'],
      limit: 1000,
      compare: false,
      where: ids.length <= 200 ? { ...rest, group_id: ids } : where,
    },
    signal,
  );
  return new Map(answer.rows.map(({ keys: [id = '', category = '', culprit = ''] }) => [id, { category, culprit }]));
}
