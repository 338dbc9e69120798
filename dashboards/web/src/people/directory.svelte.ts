// All users, for admins of the installation, so that pages show addresses instead of ids.

import { api, ask, type Schemas } from '../api/client';
import { session } from '../api/session.svelte';

/** The maximum number of pages to read. Users on later pages are shown by id. */
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

/** The e-mail address for `user:<id>`, if the address is known. Returns other actors unchanged. */
export function actorName(actor: string, people: Schemas['User'][]): string {
  const id = /^user:(.+)$/.exec(actor)?.[1];
  if (id === undefined) return actor;
  if (id === session.me?.id) return session.me.email;
  // Shows the end of the id, because an id begins with its time of creation and only the end distinguishes users.
  return people.find((one) => one.id === id)?.email ?? `user …${id.slice(-8)}`;
}
