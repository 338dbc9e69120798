// A table of a page as Markdown, with the texts of its cells. Pure.

import { changeText, type Change } from '../versions/change';
import { MOST_ROWS, markdown } from './markdown';

export interface ShownTable {
  /** The title of the page and of the table. */
  title: string;
  head: string[];
  rows: string[][];
  /** The period and the filters of the page. Empty for a page without them. */
  facts: [string, string][];
  /** The page with fixed times. */
  path: string;
}

export function tableAsMarkdown({ title, head, rows, facts, path }: ShownTable, origin: string): string {
  const about = rows.length > MOST_ROWS ? [`The first ${MOST_ROWS} of ${rows.length} rows.`] : [];
  return markdown({ title, about, facts, table: { head, rows }, links: [{ label: 'Page', path }] }, origin);
}

/** `823 ms (+18 %, worse, before 700 ms)`. */
export function cellText(shown: string, share: string, change: Change | null, before: string): string {
  const changed = change && `${changeText(change)}, before ${before}`;
  const notes = [share && `${share} of active installs`, changed].filter(Boolean);
  return notes.length > 0 ? `${shown} (${notes.join('; ')})` : shown;
}
