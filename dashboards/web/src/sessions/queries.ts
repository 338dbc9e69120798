// Queries for the sessions of apps.

import { applicable } from '../api/applicable';
import { api, ask, type Schemas } from '../api/client';
import { storedUuid } from '../format/uuid';
import type { Filters } from '../navigation/filters';
import { bounds } from '../navigation/time_range';

export type AppSession = Schemas['AppSession'];
export type SessionTimeline = Schemas['SessionTimeline'];
export type SessionList = Schemas['AppSessionList'];

export interface Search {
  /** Filters in addition to the filter bar, by dimensions that all signals have, or that `signal` has. */
  where?: Record<string, string | string[]>;
  /** The id of a session or an install, or a part of a user id. */
  find?: string;
  /** Returns only sessions with an event of this signal. */
  signal?: string;
  limit: number;
}

/** The filters that a search text may mean. A UUID is a session, an install or a user. Any other text is a part of a user id. */
export function meanings(find: string): Record<string, string>[] {
  const text = find.trim();
  if (!text) return [{}];
  const id = storedUuid(text);
  if (id === null) return [{ 'contains.user_id': text }];
  return [{ session_id: id }, { install_id: id }, { user_id: text }];
}

/** The maximum number of sessions in one response. */
const PAGE = 200;

/** Loads up to `search.limit` sessions. The session with the latest event is first. */
export async function askSessions(filters: Filters, search: Search, signal: AbortSignal): Promise<SessionList> {
  const lists = await Promise.all(
    meanings(search.find ?? '').map((meaning) => askPages(filters, { ...search.where, ...meaning }, search, signal)),
  );
  const sessions = lists.flatMap((list) => list.sessions);
  // Removes duplicates: a user id may equal an install id.
  const distinct = [...new Map(sessions.map((one) => [one.session_id, one])).values()];
  return { sessions: distinct, next: lists.find((list) => list.next)?.next };
}

async function askPages(
  filters: Filters,
  where: Record<string, string | string[]>,
  search: Search,
  signal: AbortSignal,
): Promise<SessionList> {
  const { from, to } = bounds(filters.range, new Date());
  const path = { project: filters.project };
  // All signals have the dimensions of batches.
  const { chosen } = applicable(filters, 'usage');
  const query = {
    ...chosen,
    ...where,
    from: from.toISOString(),
    to: to.toISOString(),
    with: search.signal || undefined,
  };
  const sessions: AppSession[] = [];
  for (let cursor: string | undefined; ;) {
    const limit = Math.min(PAGE, search.limit - sessions.length);
    const params = { path, query: { ...query, limit, cursor } as never };
    const page = await ask<SessionList>(api.GET('/api/v1/projects/{project}/sessions', { params, signal }));
    sessions.push(...page.sessions);
    cursor = page.next ?? undefined;
    if (!cursor || sessions.length >= search.limit) return { sessions, next: cursor };
  }
}

export interface Part {
  /** The time of an event of the session. */
  at?: string;
  from?: string;
  to?: string;
}

export function askSession(
  project: string,
  session: string,
  { at, from, to }: Part,
  signal: AbortSignal,
): Promise<SessionTimeline> {
  const path = { project, session };
  const query = { at: at || undefined, from: from || undefined, to: to || undefined };
  return ask(api.GET('/api/v1/projects/{project}/sessions/{session}', { params: { path, query }, signal }));
}
