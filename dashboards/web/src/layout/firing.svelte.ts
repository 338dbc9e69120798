// Firing incidents, for the badge of the navigation and for the overview. Both share one request per minute.

import type { Incident } from '../alerts/around';
import { api, ask } from '../api/client';

/** The maximum number of incidents in a response. There may be more firing incidents. */
export const MOST = 50;

let incidents = $state.raw<Incident[]>([]);
let isAnswered = $state(false);
let of = '';
let latest = 0;

export const firing = {
  get incidents() {
    return incidents;
  },
  /** Whether the first request of the project has completed or failed. */
  get isAnswered() {
    return isAnswered;
  },
  /** Fetches the incidents now. A failure keeps the previous incidents, because pages report problems and the badge does not. */
  async ask(project: string) {
    latest += 1;
    const mine = latest;
    if (project !== of) [incidents, isAnswered] = [[], false];
    of = project;
    if (!project) return;
    const params = { path: { project }, query: { state: 'firing' as const } };
    const answer = await ask(api.GET('/api/v1/projects/{project}/incidents', { params })).catch(() => null);
    if (mine !== latest) return;
    if (answer) incidents = answer.incidents;
    isAnswered = true;
  },
};
