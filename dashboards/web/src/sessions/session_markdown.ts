// The header of a session, and the session as Markdown: its device, its numbers and its janks. Pure.

import type { Evidence } from '../evidence/markdown';
import { clockSeconds, dateTimeSeconds } from '../format/times';
import { format } from '../format/units';
import { zoneText } from '../format/zone.svelte';
import { sessionAddress } from '../navigation/links';
import type { AppSession, SessionTimeline } from './queries';

/** The maximum number of janks in the table. */
const SHOWN = 20;

/** The device and the app of a session. */
export const sessionFacts = (of: AppSession): [string, string][] => [
  ['Start', dateTimeSeconds(of.start)],
  ['Last event', dateTimeSeconds(of.last)],
  ['Device', [of.device_model, of.device_class && `class ${of.device_class}`].filter(Boolean).join(', ')],
  ['OS', `${of.os_name} ${of.os_version}`],
  ['Version', of.app_version],
  ['Build', of.build > 0 ? String(of.build) : ''],
  ['User', of.user_id || 'none'],
  ['Mode', of.mode],
  ['Channel', of.channel],
  ['Configuration', of.config_revision > 0 ? `revision ${of.config_revision}` : 'none'],
];

export const sessionNumbers = (of: AppSession): { label: string; value: number | null; unit?: 'ms' | 'share' }[] => [
  { label: 'Lasted', value: Date.parse(of.end) - Date.parse(of.start), unit: 'ms' },
  { label: 'Janks', value: of.janks },
  { label: 'Blocked for', value: of.jank_ms, unit: 'ms' },
  { label: 'Slow frames', value: of.frames_drawn > 0 ? of.slow_frames / of.frames_drawn : null, unit: 'share' },
  { label: 'Frozen frames', value: of.frozen_frames },
  { label: 'Requests', value: of.requests },
];

export function sessionEvidence(
  { session: of, janks }: Pick<SessionTimeline, 'session' | 'janks'>,
  project: string,
): Evidence {
  const range = { kind: 'absolute', from: new Date(of.start), to: new Date(Date.parse(of.last) + 1000) } as const;
  const longest = janks.toSorted((a, b) => b.duration_ms - a.duration_ms).slice(0, SHOWN);
  return {
    title: `Session ${of.session_id.slice(0, 8)}`,
    about: longest.length < janks.length ? [`Lists the ${SHOWN} longest of ${format(janks.length)} janks.`] : [],
    facts: [
      // The id of a person does not belong into an issue. The session leads to the user.
      ...sessionFacts(of).filter(([label]) => label !== 'User'),
      ['Time zone', zoneText(range.to)],
      ...sessionNumbers(of).map(({ label, value, unit = 'count' }): [string, string] => [label, format(value, unit)]),
    ],
    table: {
      head: ['Time', 'Jank', 'Kind', 'Duration', 'Page'],
      rows: longest
        .toSorted((a, b) => Date.parse(a.start) - Date.parse(b.start))
        .map(({ start, title, kind, duration_ms, page }) => [
          clockSeconds(start),
          title || 'Stack without a name',
          kind === 'anr' ? 'ANR' : kind,
          format(duration_ms, 'ms'),
          page,
        ]),
    },
    links: [{ label: 'Session', path: sessionAddress({ project, range, chosen: {}, baseVersion: '' }, of.session_id) }],
  };
}
