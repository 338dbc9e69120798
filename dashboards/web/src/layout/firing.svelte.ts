// Incidents that go on now: the badge of the navigation and the lines on the overview. One question for both, each minute.

import type { Incident } from '../alerts/around';
import { api, ask } from '../api/client';

const EVERY_MS = 60_000;
/** A page of incidents: there may be more. */
export const MOST = 50;

let incidents = $state.raw<Incident[]>([]);
let of = '';
let latest = 0;

export const firing = {
  get incidents() {
    return incidents;
  },
  /** Asks now. Without an answer the last one stays: pages say what is wrong, a badge does not. */
  async ask(project: string) {
    latest += 1;
    const mine = latest;
    if (project !== of) incidents = [];
    of = project;
    if (!project) return;
    const params = { path: { project }, query: { state: 'firing' as const } };
    const answer = await ask(api.GET('/api/v1/projects/{project}/incidents', { params })).catch(() => null);
    if (answer && mine === latest) incidents = answer.incidents;
  },
};

/** While a component is there. Called while it is made. */
export function watchFiring(project: () => string) {
  $effect(() => {
    const wanted = project();
    void firing.ask(wanted);
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') void firing.ask(wanted);
    }, EVERY_MS);
    return () => clearInterval(timer);
  });
}
