// Repeats all requests of the page, while everything stays on the screen.

import { tick } from 'svelte';
import type { Problem } from '../api/problem';

interface Repeatable {
  readonly settled: Promise<void> | null;
  refresh(): Promise<void>;
}

/** A request may depend on the data of another request, so a refresh waits in rounds. No page needs this many. */
const MOST_ROUNDS = 6;
const members = new Set<Repeatable>();
let isRunning = $state(false);
let problem = $state.raw<Problem | null>(null);
let at = new Date();

export const refresh = {
  get isRunning() {
    return isRunning;
  },
  /** Why the last refresh failed. */
  get problem() {
    return problem;
  },
  /** When the shown data was requested. */
  get at() {
    return at;
  },
  /** Records that a request is sent now. A request that the user caused clears the problem of a failed refresh. */
  sent(isOfUser: boolean) {
    at = new Date();
    if (isOfUser) problem = null;
  },
  /** Adds a request of the page. Returns a function that removes the request. */
  join(member: Repeatable): () => void {
    members.add(member);
    return () => members.delete(member);
  },
  fail(wanted: Problem) {
    problem = wanted;
  },
  /** Does nothing while a request of the page is under way. */
  async run() {
    if (isRunning || [...members].some((one) => one.settled)) return;
    isRunning = true;
    problem = null;
    for (const one of members) void one.refresh();
    for (let round = 0; round < MOST_ROUNDS; round += 1) {
      const pending = [...members].flatMap((one) => one.settled ?? []);
      if (pending.length === 0) break;
      await Promise.all(pending);
      // Starts the requests that depend on the new data.
      await tick();
    }
    isRunning = false;
  },
};
