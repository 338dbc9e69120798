// Repeats all requests of the page, while everything stays on the screen.

import { tick } from 'svelte';
import type { Problem } from '../api/problem';

interface Repeatable {
  readonly settled: Promise<void> | null;
  refresh(): Promise<void>;
}

/** Requests may depend on the data of others. More rounds than any page has such steps. */
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
  /** Notes that a request is sent now. One that the user caused replaces the failed refresh. */
  sent(isOfUser: boolean) {
    at = new Date();
    if (isOfUser) problem = null;
  },
  /** Adds a request of the page. Returns the function that removes it. */
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
      // Lets requests start that depend on the new data.
      await tick();
    }
    isRunning = false;
  },
};
