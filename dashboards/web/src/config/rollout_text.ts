// Describes the progress of a rollout. Pure.

import type { Schemas } from '../api/client';
import { format } from '../format/units';

type Rollout = Schemas['Rollout'];

/** From this share on, a rollout counts as complete, because some installs are always off or offline. */
const DONE_SHARE = 0.98;

export function shareRunning(rollout: Rollout): number | null {
  return rollout.installs > 0 ? rollout.running / rollout.installs : null;
}

export function isArriving(rollout: Rollout): boolean {
  return rollout.revision > 0 && (shareRunning(rollout) ?? 0) < DONE_SHARE;
}

/** When a running app will have reported the revision. The app learns of it from a receipt or a poll, and reports it with its next upload. */
export function expectedText(rollout: Rollout): string {
  const upload = rollout.upload_interval_s;
  const learns = rollout.announced ? Math.min(upload, rollout.poll_interval_s) : rollout.poll_interval_s;
  const by = rollout.announced && upload <= rollout.poll_interval_s ? 'upload' : 'poll';
  return `An app in use learns of a revision with its next ${by} and reports it with the upload after: expect about ${format(
    learns + upload,
    's',
  )}. Apps that are closed follow at their next start.`;
}
