// The command that compares two sessions. Pure.

import { wholeSeconds } from '../format/times';
import type { Filters } from '../navigation/filters';
import { bounds } from '../navigation/time_range';

export function compareCommand(filters: Filters, base: string, head: string, now = new Date()): string {
  const { from, to } = bounds(filters.range, now);
  const project = filters.project && filters.project !== 'default' ? [`--project ${quoted(filters.project)}`] : [];
  // Ends a second later, so that the period includes the latest event of the list.
  const to1 = new Date(to.getTime() + 1000);
  return [
    'unjank compare',
    `--base session_id=${quoted(base)}`,
    `--head session_id=${quoted(head)}`,
    `--from ${wholeSeconds(from)} --to ${wholeSeconds(to1)}`,
    ...project,
  ].join(' \\\n  ');
}

/** Quotes a word for the shell. All parts come from the URL, so a crafted link must not add a command. */
function quoted(word: string): string {
  return /^[\w.-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`;
}
