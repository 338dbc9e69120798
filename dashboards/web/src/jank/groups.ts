// Groups of janks as a table: names and numbers come in two answers, for a question has at most three dimensions.

import { api, ask } from '../api/client';
import { queryTable, valueOf, type TableAnswer, type TableRow } from '../api/query';
import type { Filters } from '../navigation/filters';
import type { Where } from './questions';

export interface Group {
  id: string;
  title: string;
  owner: string;
  row: TableRow;
  /** Not there in the version that is compared with. */
  isNew: boolean;
}

export interface Names {
  category: string;
  culprit: string;
}

export interface Groups {
  answer: TableAnswer;
  groups: Group[];
}

const MEASURES = ['count', 'installs', 'sum_ms', 'p95_ms'];

/** Groups with their numbers; what else they are called is asked for after, so that the numbers need not wait for it. */
export async function jankGroups(
  filters: Filters,
  asked: { where: Where; order: string; limit: number },
  signal: AbortSignal,
): Promise<Groups> {
  const question = { signal: 'janks' as const, by: ['group_id', 'title', 'owner'], measures: MEASURES, ...asked };
  const answer = await queryTable(filters, question, signal);
  const groups = answer.rows.map((row) => {
    const [id = '', title = '', owner = ''] = row.keys;
    const base = valueOf(answer, row, 'count', 'base');
    return {
      id,
      title: title || 'Stacks without a name',
      owner,
      row,
      isNew: filters.baseVersion !== '' && !base,
    };
  });
  return { answer, groups };
}

/** The group that has the stacks of a group now: symbols and rules move stacks. */
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
  if (ids.length === 0) return new Map();
  const answer = await queryTable(
    filters,
    {
      signal: 'janks',
      by: ['group_id', 'category', 'culprit'],
      measures: ['count'],
      limit: 1000,
      compare: false,
      where: { ...where, ...(ids.length <= 200 ? { group_id: ids } : {}) },
    },
    signal,
  );
  return new Map(answer.rows.map(({ keys: [id = '', category = '', culprit = ''] }) => [id, { category, culprit }]));
}
