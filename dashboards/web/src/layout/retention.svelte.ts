// How many days each project keeps raw events. Requested once per project.

import { api, ask } from '../api/client';

let days = $state.raw<Record<string, number | undefined>>({});
const asked = new Set<string>();

/** 0 means forever. `undefined` until the server answers. */
export function rawDaysOf(project: string): number | undefined {
  return days[project];
}

export async function askRawDays(project: string) {
  if (!project || asked.has(project)) return;
  asked.add(project);
  const params = { path: { project } };
  // Without an answer, the note leaves out the number.
  const answer = await ask(api.GET('/api/v1/projects/{project}/storage', { params })).catch(() => null);
  if (!answer) asked.delete(project);
  else days = { ...days, [project]: answer.keep.raw_days ?? answer.default_keep.raw_days ?? 0 };
}
