// The API calls that assign incidents and comment on them.

import { api, ask, type Schemas } from '../api/client';
import type { Incident } from './incident';

/** The people to whom incidents of a project can be assigned. */
export async function assigneesOf(project: string): Promise<Schemas['Assignee'][]> {
  const params = { path: { project } };
  const { assignees } = await ask(api.GET('/api/v1/projects/{project}/assignees', { params }));
  return assignees;
}

/** `null` assigns the incident to nobody. */
export function assign(project: string, incident: string, user: string | null): Promise<Incident> {
  const params = { path: { project, incident } };
  return ask(api.PUT('/api/v1/projects/{project}/incidents/{incident}/assignee', { params, body: { user } }));
}

export function commentOn(project: string, incident: string, text: string) {
  const params = { path: { project, incident } };
  return ask(api.POST('/api/v1/projects/{project}/incidents/{incident}/comments', { params, body: { text } }));
}

export function deleteComment(project: string, incident: string, comment: string) {
  const params = { path: { project, incident, comment } };
  return ask(api.DELETE('/api/v1/projects/{project}/incidents/{incident}/comments/{comment}', { params }));
}
