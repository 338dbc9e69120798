// The status of jank groups: the API calls, and the texts.

import { api, ask, type Schemas } from '../api/client';

export type Handling = Schemas['JankGroupHandling'];
export type Discussion = Schemas['JankGroupDiscussion'];
export type Decision = Schemas['JankGroupDecision'];

/** The statuses of the filter. Groups that came back count as open. */
export const STATUSES = [
  { value: '', label: 'Open groups' },
  { value: 'resolved', label: 'Resolved groups' },
  { value: 'ignored', label: 'Ignored groups' },
  { value: 'all', label: 'Groups of any status' },
];

/** The maximum number of groups in one request. */
const MOST = 1000;

/** Returns those of the given groups that are resolved or ignored, by id. Sends one request for all groups. */
export async function handlingOf(project: string, ids: string[], signal: AbortSignal): Promise<Map<string, Handling>> {
  const asked = [...new Set(ids)].slice(0, MOST);
  if (asked.length === 0) return new Map();
  const params = { path: { project }, query: { group_id: asked } };
  const { groups } = await ask(api.GET('/api/v1/projects/{project}/janks/handling', { params, signal }));
  return new Map(groups.map((one) => [one.group_id, one]));
}

export function discussionOf(project: string, group: string, signal: AbortSignal): Promise<Discussion> {
  const params = { path: { project, group } };
  return ask(api.GET('/api/v1/projects/{project}/janks/groups/{group}/handling', { params, signal }));
}

export function decide(project: string, group: string, decision: Decision): Promise<Handling> {
  const params = { path: { project, group } };
  return ask(api.PUT('/api/v1/projects/{project}/janks/groups/{group}/handling', { params, body: decision }));
}

export function commentOn(project: string, group: string, text: string) {
  const params = { path: { project, group } };
  return ask(api.POST('/api/v1/projects/{project}/janks/groups/{group}/comments', { params, body: { text } }));
}

export function deleteComment(project: string, group: string, comment: string) {
  const params = { path: { project, group, comment } };
  return ask(api.DELETE('/api/v1/projects/{project}/janks/groups/{group}/comments/{comment}', { params }));
}

/** The text and colour of a badge in lists. `null` for an open group. */
export function markOf(handling: Handling | undefined): { text: string; kind: 'warn' | 'good' | '' } | null {
  if (!handling || handling.state === 'open') return null;
  if (handling.came_back_in) return { text: `came back in ${handling.came_back_in}`, kind: 'warn' };
  if (handling.state === 'resolved') return { text: `resolved in ${handling.app_version}`, kind: 'good' };
  return { text: 'ignored', kind: '' };
}

/** The current status, such as `Came back in 4.12.1`, and the decision before it. */
export function headlineOf(handling: Handling): { headline: string; before: string } {
  const version = handling.app_version ?? '';
  const decided = {
    open: '',
    resolved: `Resolved in ${version}`,
    ignored: `Ignored until it occurs in a version after ${version}`,
  }[handling.state];
  if (handling.came_back_in) return { headline: `Came back in ${handling.came_back_in}`, before: decided };
  if (handling.state !== 'open') return { headline: decided, before: '' };
  return { headline: 'Open', before: handling.revision > 0 ? 'Reopened' : '' };
}
