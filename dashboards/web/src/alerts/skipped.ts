// Writes the reasons why a preview skipped groups. Pure.

import type { Schemas } from '../api/client';
import { dateTime, format, fromMicros } from '../format/units';
import { coverage, isBefore, type Mute } from './mutes';
import { groupName } from './firing_periods';

/** The maximum number of groups that a rule watches. */
export const MOST_GROUPS = 200;

export interface Skipped {
  name: string;
  reason: string;
  evaluations: number;
}

export function reasonOf(one: Schemas['AlertSkippedGroup'], least: number): Skipped {
  const base = typeof one.base_samples === 'number' ? `, base ${format(one.base_samples, 'count')}` : '';
  const reasons: Record<Schemas['AlertSkipReason'], string> = {
    too_few_samples: `Too few samples: ${format(one.samples, 'count')}${base} (minimum ${format(least, 'count')})`,
    no_base:
      'app_id' in one.group && Object.keys(one.group).length === 1
        ? 'No base: fewer than two versions have enough samples'
        : 'No base: no samples to compare with',
    no_value: 'The measure has no value, or there are too many groups to judge',
  };
  return { name: groupName(one.group), reason: reasons[one.reason], evaluations: one.evaluations };
}

/** One sentence for the mute windows of the rule, and one for each mute that is active or begins later. */
export function muteNotes(mutes: Mute[], preview: { muted_evaluations: number; evaluations: number }): string[] {
  const { muted_evaluations: muted, evaluations } = preview;
  const windows =
    muted > 0
      ? [`Mute windows of the rule covered ${muted} of ${evaluations} evaluations. No incident opens in a mute window.`]
      : [];
  const at = (micros: number) => dateTime(fromMicros(micros));
  const now = mutes.map((one) => {
    const from = isBefore(one) ? `from ${at(one.starts_at)} ` : '';
    return `Muted ${from}until ${at(one.ends_at)} (${coverage(one)}): ${one.reason}. The preview ignores this mute.`;
  });
  return [...windows, ...now];
}
