// Describes the progress of a rollout. Pure.

import type { Schemas } from '../api/client';
import { format } from '../format/units';

type Rollout = Schemas['Rollout'];

/** A rollout counts as complete from this share on, because some installs are always off or offline. */
const DONE_SHARE = 0.98;

export function shareRunning(rollout: Rollout): number | null {
  return rollout.installs > 0 ? rollout.running / rollout.installs : null;
}

/** The installs that do not run the revision, or may not. Empty if there are none. */
export function othersText({ installs, running, waiting }: Rollout): string {
  const silent = installs - running - waiting;
  const sentences = [
    ...(waiting === 0 && running === 0 ? ['No install sent data since the revision was saved.'] : []),
    ...(waiting > 0
      ? [
          `${format(waiting)} sent data since the revision was saved and still ${waiting === 1 ? 'runs' : 'run'} an earlier revision.`,
        ]
      : []),
    ...(silent > 0
      ? [`${format(silent)} sent nothing since the save, so ${silent === 1 ? 'its' : 'their'} revision is unknown.`]
      : []),
  ];
  return sentences.join(' ');
}

export function isArriving(rollout: Rollout): boolean {
  return rollout.revision > 0 && (shareRunning(rollout) ?? 0) < DONE_SHARE;
}

/**
 * Says when devices get a saved configuration. A device that is switched off uploads nothing, so a poll is its only way to get the change.
 */
export function fetchedText(occasion: 'upload' | 'poll', withinS?: number): string {
  const when = occasion === 'upload' ? 'after its next upload' : 'with its next poll';
  const within = withinS === undefined ? '' : `, within ${format(withinS, 's')}`;
  return `A running app fetches its configuration ${when}${within}. Other apps fetch it when they start or come to the foreground.`;
}

/**
 * Says when a running app reports the revision. The app gets the revision after a receipt or a poll, and reports the revision with its next
 * upload.
 */
export function expectedText(rollout: Rollout): string {
  const upload = rollout.upload_interval_s;
  const learns = rollout.announced ? Math.min(upload, rollout.poll_interval_s) : rollout.poll_interval_s;
  const by = rollout.announced && upload <= rollout.poll_interval_s ? 'upload' : 'poll';
  const expected = format(learns + upload, 's');
  return `${fetchedText(by, learns)} A running app reports the revision with its next upload after that: expect about ${expected}.`;
}
