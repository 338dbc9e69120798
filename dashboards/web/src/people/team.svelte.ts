// The team of the reader in each project: the owner whose janks and incidents the reader handles. The browser stores the choice.

import { session } from '../api/session.svelte';

let changes = $state(0);

/** The key contains the user, because several people may use the same browser. */
const keyOf = (project: string) => `unjank-team:${session.me?.id ?? ''}:${project}`;

/** The team of the reader. Empty if the reader has not chosen a team. */
export function teamIn(project: string): string {
  void changes;
  return localStorage.getItem(keyOf(project)) ?? '';
}

export function chooseTeam(project: string, team: string) {
  if (team) localStorage.setItem(keyOf(project), team);
  else localStorage.removeItem(keyOf(project));
  changes += 1;
}
