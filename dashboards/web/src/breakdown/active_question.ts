// The query of the active installs of a table. An install is active if it sent a batch in the period of the table, with the filters of the
// table. Pure.

import { ignored } from '../api/applicable';
import type { Question, TableAnswer } from '../api/query';
import { withValues, type Filters } from '../navigation/filters';

/** The dimensions of batches that roll-ups keep. Rows of a table by other dimensions are compared with all active installs. */
const KEPT = ['app_id', 'app_version', 'os_name', 'device_class'];
/** Tables by these dimensions show no share: the active installs differ by day, and a share for a single user or install is meaningless. */
const WITHOUT_SHARE = ['day', 'user_id', 'install_id'];
const MINUTE_MS = 60_000;

export interface ActiveQuestion {
  filters: Filters;
  question: Question;
}

export type Asked = Pick<TableAnswer, 'by' | 'from' | 'to'>;

/**
 * Returns `null` if the table filters by page, network or attribute, or groups by a dimension of `WITHOUT_SHARE`. Active installs are counted
 * from batches, which contain none of these.
 */
export function activeQuestion(answer: Asked, filters: Filters): ActiveQuestion | null {
  if (ignored(filters, 'usage').length > 0 || answer.by.some((name) => WITHOUT_SHARE.includes(name))) return null;
  // Whole minutes let the tables of a page share one query.
  const from = new Date(Math.floor(Date.parse(answer.from) / MINUTE_MS) * MINUTE_MS);
  const to = new Date(Math.ceil(Date.parse(answer.to) / MINUTE_MS) * MINUTE_MS);
  const by = KEPT.filter((name) => answer.by.includes(name));
  const inPeriod: Filters = { ...filters, range: { kind: 'absolute', from, to }, baseVersion: '' };
  return {
    // A table by version may also have rows of the base version.
    filters: by.includes('app_version') ? withValues(inPeriod, 'app_version', []) : inPeriod,
    question: { signal: 'usage', by, measures: ['installs'], limit: 1000 },
  };
}

/** Returns the active installs to compare a row with: those of its version, system or device class if the table groups by these. */
export function activeOf(active: TableAnswer, answer: Asked, keys: string[]): number | null {
  const wanted = active.by.map((name) => keys[answer.by.indexOf(name)]);
  return active.rows.find((row) => row.keys.every((key, place) => key === wanted[place]))?.values[0] ?? null;
}
