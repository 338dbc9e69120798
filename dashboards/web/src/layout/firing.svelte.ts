// Firing incidents and their mutes, for the badge of the navigation and for the overview. Both share the requests of each minute.

import type { Incident } from '../alerts/incident';
import { activeMuteOf, type Mute } from '../alerts/mutes';
import { api, ask } from '../api/client';

/** The maximum number of incidents in a response. There may be more firing incidents. */
export const MOST = 50;

let incidents = $state.raw<Incident[]>([]);
let mutes = $state.raw<Mute[]>([]);
let isAnswered = $state(false);
let of = '';
let latest = 0;

export const firing = {
  get incidents() {
    return incidents;
  },
  get mutes() {
    return mutes;
  },
  /** The mute that currently covers an incident. */
  muteOf(incident: Incident): Mute | null {
    return activeMuteOf(mutes, incident);
  },
  /** Whether an incident is acknowledged or muted, so that nobody else needs to look at it now. */
  isHandled(incident: Incident): boolean {
    return Boolean(incident.acknowledged_by) || this.muteOf(incident) !== null;
  },
  /** Whether the first request of the project has completed or failed. */
  get isAnswered() {
    return isAnswered;
  },
  /** Fetches the incidents now. A failure keeps the previous incidents, because pages report problems and the badge does not. */
  async ask(project: string) {
    latest += 1;
    const mine = latest;
    if (project !== of) [incidents, mutes, isAnswered] = [[], [], false];
    of = project;
    if (!project) return;
    const params = { path: { project }, query: { state: 'firing' as const } };
    const answer = await ask(api.GET('/api/v1/projects/{project}/incidents', { params })).catch(() => null);
    const found = answer?.incidents.length ? await mutesOf(project) : null;
    if (mine !== latest) return;
    if (found) mutes = found;
    if (answer) incidents = answer.incidents;
    isAnswered = true;
  },
};

/** `null` if the request fails. */
async function mutesOf(project: string): Promise<Mute[] | null> {
  const params = { path: { project } };
  const answer = await ask(api.GET('/api/v1/projects/{project}/mutes', { params })).catch(() => null);
  return answer?.mutes ?? null;
}
