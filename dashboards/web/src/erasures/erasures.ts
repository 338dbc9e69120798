// Describes erasures as text. Pure.

import type { Schemas } from '../api/client';
import { storedUuid } from '../format/uuid';

export type Erasure = Schemas['Erasure'];

/** The refresh interval while an erasure runs. */
export const EVERY_MS = 2_000;

export function isUnfinished(erasures: Erasure[]): boolean {
  return erasures.some(({ state }) => state !== 'done');
}

const KINDS: Record<Erasure['kind'], string> = { install: 'Install', user: 'User', project: 'Whole project' };

/** The subject of an erasure. The server removes the id from the receipt 30 days after the end. */
export function whatText({ kind, subject, project }: Erasure): string {
  if (kind === 'project') return `${KINDS.project} ${project}`;
  return subject ? `${KINDS[kind]} ${subject}` : `${KINDS[kind]} (id removed)`;
}

export function rowsOf({ receipt }: Erasure): number {
  return Object.values(receipt.rows).reduce((sum, rows) => sum + rows, 0);
}

/** The number of rows in each table, the largest number first. */
export function byTable({ receipt }: Erasure): { table: string; rows: number }[] {
  return Object.entries(receipt.rows)
    .map(([table, rows]) => ({ table, rows }))
    .toSorted((a, b) => b.rows - a.rows || a.table.localeCompare(b.table));
}

/** The current step of an erasure. Empty when the erasure is done. */
export function stepText({ state, receipt }: Erasure): string {
  if (state === 'done') return '';
  if (receipt.error) return `Retrying: ${receipt.error}`;
  if (!receipt.step) return state === 'waiting' ? 'Starts within seconds' : 'Starting';
  return receipt.step.charAt(0).toUpperCase() + receipt.step.slice(1);
}

/** The number of running erasures, for the line above the list. Empty if no erasure is running. */
export function underWayText(erasures: Erasure[]): string {
  const count = erasures.filter(({ state }) => state !== 'done').length;
  return count === 0 ? '' : `${count} under way`;
}

export function installIdFault(text: string): string {
  if (text.trim() === '') return 'Enter the install id.';
  return storedUuid(text) ? '' : 'An install id is a UUID, such as 0b5a6b9e-6a53-4d3c-9a3c-1d2f6a1e7c11.';
}
