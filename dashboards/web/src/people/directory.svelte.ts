// Everybody there is, for admins of the installation: names to show instead of ids.

import { api, ask, type Schemas } from '../api/client';
import { session } from '../api/session.svelte';

/** More pages than this are not read: ids are shown for the rest. */
const MOST_PAGES = 20;

export async function everybody(signal?: AbortSignal): Promise<Schemas['User'][]> {
  const people: Schemas['User'][] = [];
  if (!session.me?.is_admin) return people;
  let after: string | undefined;
  for (let page = 0; page < MOST_PAGES; page += 1) {
    const answer = await ask(api.GET('/api/v1/users', { params: { query: { after } }, signal }));
    people.push(...answer.users);
    if (!answer.after) break;
    after = answer.after;
  }
  return people;
}

/** `user:<id>` as an address where it is known; other actors as they are. */
export function actorName(actor: string, people: Schemas['User'][]): string {
  const id = /^user:(.+)$/.exec(actor)?.[1];
  if (id === undefined) return actor;
  if (id === session.me?.id) return session.me.email;
  // The end of an id tells people apart; the beginning is the time they were made.
  return people.find((one) => one.id === id)?.email ?? `user …${id.slice(-8)}`;
}
