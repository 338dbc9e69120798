// Whether the project is off, for the banner on all of its pages.

import { api, ask, type Schemas } from '../api/client';

type SwitchedOff = NonNullable<Schemas['KillSwitch']['switched_off']>;

let off = $state.raw<SwitchedOff | null>(null);
let switches = $state(0);
let of = '';
let latest = 0;

export const killSwitch = {
  /** `null` if the project is on, or while loading. */
  get off() {
    return off;
  },
  /** How often this user switched the project off or on. Pages reload when this number changes. */
  get switches() {
    return switches;
  },
  /** Fetches the state now. A failure keeps the previous state. */
  async ask(project: string) {
    latest += 1;
    const mine = latest;
    if (project !== of) off = null;
    of = project;
    if (!project) return;
    const params = { path: { project } };
    const answer = await ask(api.GET('/api/v1/projects/{project}/config/kill', { params })).catch(() => null);
    if (answer && mine === latest) off = answer.switched_off ?? null;
  },
  async switchOff(project: string, note: string) {
    const params = { path: { project } };
    await ask(api.POST('/api/v1/projects/{project}/config/kill', { params, body: { note } }));
    switches += 1;
    await this.ask(project);
  },
  async switchOn(project: string, note: string) {
    const params = { path: { project } };
    await ask(api.POST('/api/v1/projects/{project}/config/switch-on', { params, body: { note } }));
    switches += 1;
    await this.ask(project);
  },
};
