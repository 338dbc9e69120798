// The owners that the rules of a project name.

import { api, ask } from '../api/client';

export async function ownersIn(project: string, signal?: AbortSignal): Promise<string[]> {
  const params = { path: { project } };
  return (await ask(api.GET('/api/v1/projects/{project}/rules/owners', { params, signal }))).owners;
}
