// Fetches entries of the audit log: one page, or all entries that match the filters, for a file.

import { api, ask } from '../api/client';
import type { Action, Entry } from './sentences';

export interface AuditFilters {
  action?: string;
  actor?: string;
  subject?: string;
  from?: Date;
  to?: Date;
}

export const PAGE = 100;
/** The maximum number of entries in a file. If there are more entries, the page tells the user. */
export const MOST_IN_FILE = 10_000;

/** `project` is `null` for the log of the whole installation. `before` is the last entry of the previous page. */
export function entriesOf(
  project: string | null,
  filters: AuditFilters,
  before: { at: number; id: string } | undefined,
  signal?: AbortSignal,
): Promise<Entry[]> {
  const query = {
    action: (filters.action || undefined) as Action | undefined,
    actor: filters.actor || undefined,
    subject: filters.subject || undefined,
    from: filters.from && filters.from.getTime() * 1000,
    to: filters.to && filters.to.getTime() * 1000,
    before_at: before?.at,
    before_id: before?.id,
  };
  const answer =
    project === null
      ? ask(api.GET('/api/v1/audit', { params: { query }, signal }))
      : ask(api.GET('/api/v1/projects/{project}/audit', { params: { path: { project }, query }, signal }));
  return answer.then(({ entries }) => entries);
}

export async function allEntries(
  project: string | null,
  filters: AuditFilters,
): Promise<{ entries: Entry[]; isCut: boolean }> {
  const entries: Entry[] = [];
  while (entries.length < MOST_IN_FILE) {
    const page = await entriesOf(project, filters, entries.at(-1));
    entries.push(...page);
    if (page.length < PAGE) return { entries, isCut: false };
  }
  return { entries, isCut: true };
}
