// Groups of janks as a table: names and numbers come in two answers, for a question has at most three dimensions.

import { queryTable, valueOf, type TableAnswer, type TableRow } from '../api/query';
import type { Filters } from '../navigation/filters';
import type { Where } from './questions';

export interface Group {
  id: string;
  title: string;
  category: string;
  owner: string;
  culprit: string;
  row: TableRow;
  /** Not there in the version that is compared with. */
  isNew: boolean;
}

export interface Groups {
  answer: TableAnswer;
  groups: Group[];
}

const MEASURES = ['count', 'installs', 'sum_ms', 'p95_ms'];

export async function jankGroups(
  filters: Filters,
  asked: { where: Where; order: string; limit: number },
  signal: AbortSignal,
): Promise<Groups> {
  const main = { signal: 'janks' as const, by: ['group_id', 'title', 'owner'], measures: MEASURES, ...asked };
  const answer = await queryTable(filters, main, signal);
  const ids = [...new Set(answer.rows.map((row) => row.keys[0]!))];
  if (ids.length === 0) return { answer, groups: [] };
  const names = await queryTable(
    filters,
    {
      signal: 'janks',
      by: ['group_id', 'category', 'culprit'],
      measures: ['count'],
      limit: 1000,
      compare: false,
      where: { ...asked.where, ...(ids.length <= 200 ? { group_id: ids } : {}) },
    },
    signal,
  );
  const known = new Map(names.rows.map((row) => [row.keys[0], row.keys]));
  const groups = answer.rows.map((row) => {
    const [id = '', title = '', owner = ''] = row.keys;
    const [, category = '', culprit = ''] = known.get(id) ?? [];
    const base = valueOf(answer, row, 'count', 'base');
    return {
      id,
      title: title || 'Stacks without a name',
      category,
      owner,
      culprit,
      row,
      isNew: filters.baseVersion !== '' && !base,
    };
  });
  return { answer, groups };
}
