// When each version began to reach users. All charts and pages share one request, which is repeated every five minutes.

import { api, ask } from '../api/client';
import type { Source } from '../components/missing_value';
import { noteFirstSeen } from './version_order';

export interface Release {
  app: string;
  version: string;
  /** Seconds since the epoch, of whole hours. */
  firstSeen: number;
  lastSeen: number;
  /** When the version began to reach users. `null` if the version has not reached users, or was in use before the data begins. */
  reached: number | null;
}

/** Defines *began to reach users*, for tooltips and texts. */
export const REACHES_USERS = 'the first day on which 5 % of active installs ran it';
const FRESH_MS = 5 * 60_000;

let all = $state.raw<Release[]>([]);
let isAnswered = $state(false);
let problem = $state.raw<unknown>(null);
let of = '';
let askedAt = 0;
let asking = Promise.resolve();

export const releases = {
  /** The releases of each app, newest first. */
  get all() {
    return all;
  },
  /** Whether the first request of the project has completed or failed. */
  get isAnswered() {
    return isAnswered;
  },
  /** Fetches the versions of a project, unless they are fresh. A failure keeps the previous versions. */
  ask(project: string): Promise<void> {
    if (project !== of || Date.now() - askedAt >= FRESH_MS) {
      if (project !== of) [all, isAnswered] = [[], false];
      [of, askedAt] = [project, Date.now()];
      asking = project ? fetchAll(project) : Promise.resolve();
    }
    return asking;
  },
};

/** The request, for the text of a missing value. */
export const releasesSource: Source = {
  get data() {
    return isAnswered && problem === null ? all : undefined;
  },
  busy: false,
  get problem() {
    return problem;
  },
};

async function fetchAll(project: string) {
  const params = { path: { project } };
  let failure: unknown = null;
  const answer = await ask(api.GET('/api/v1/projects/{project}/versions', { params })).catch((error: unknown) => {
    failure = error;
    return null;
  });
  if (project !== of) return;
  [isAnswered, problem] = [true, failure];
  if (!answer) {
    askedAt = 0;
    return;
  }
  all = answer.versions.map((one) => ({
    app: one.app_id,
    version: one.app_version,
    firstSeen: one.first_seen / 1e6,
    lastSeen: one.last_seen / 1e6,
    reached: one.reached_users ? one.reached_users / 1e6 : null,
  }));
  noteFirstSeen(all);
}
