// The form of retention and quota. Pure.

import { decimal, grouped } from '../format/units';
import type { Schemas } from '../api/client';

type KeepDays = Schemas['KeepDays'];
export type Kept = 'raw_days' | 'hourly_days' | 'daily_days';

export const KEPT: { id: Kept; label: string }[] = [
  { id: 'raw_days', label: 'Events (days)' },
  { id: 'hourly_days', label: 'Hourly roll-ups (days)' },
  { id: 'daily_days', label: 'Daily roll-ups (days)' },
];
const MOST_DAYS = 36_500;
const GB = 1e9;

/** As typed. */
export type StorageFields = Record<Kept | 'gigabytes', string>;

export function fieldsOf({ keep, disk_bytes }: Pick<Schemas['Storage'], 'keep' | 'disk_bytes'>): StorageFields {
  const text = (value: number | null | undefined) => (value == null ? '' : String(value));
  return {
    raw_days: text(keep.raw_days),
    hourly_days: text(keep.hourly_days),
    daily_days: text(keep.daily_days),
    gigabytes: disk_bytes == null ? '' : gigabytesText(disk_bytes),
  };
}

/** Exact to the byte, without an exponent. */
export function gigabytesText(bytes: number): string {
  return decimal(bytes / GB, 9);
}

/** A request body. A quota that was not edited keeps its exact number of bytes. */
export function storageOf(fields: StorageFields, known: Schemas['Storage']): Schemas['NewStorage'] {
  const days = (text: string) => (text.trim() === '' ? null : Number(text));
  const keep: KeepDays = {
    raw_days: days(fields.raw_days),
    hourly_days: days(fields.hourly_days),
    daily_days: days(fields.daily_days),
  };
  const isSame = fields.gigabytes === fieldsOf(known).gigabytes;
  const typed = fields.gigabytes.trim() === '' ? null : Math.round(Number(fields.gigabytes) * GB);
  return { keep, disk_bytes: isSame ? known.disk_bytes : typed };
}

export function daysText(days: number): string {
  if (days === 0) return 'forever';
  return days === 1 ? '1 day' : `${grouped(days)} days`;
}

/** The fault of a number of days. Only admins of the installation may exceed the retention of the installation. */
export function daysFault(text: string, ofInstallation: number | null | undefined, isOperator: boolean): string {
  if (text.trim() === '') return '';
  const days = Number(text);
  if (!/^\d+$/.test(text.trim())) return 'Enter a whole number of days, or leave the field empty.';
  if (days > MOST_DAYS) return `Enter at most ${grouped(MOST_DAYS)} days, or 0 for no limit.`;
  const isLonger = ofInstallation != null && ofInstallation !== 0 && (days === 0 || days > ofInstallation);
  if (isLonger && !isOperator)
    return `Only admins of the installation can keep rows for longer than ${daysText(ofInstallation)}.`;
  return '';
}

export function quotaFault(text: string): string {
  return text.trim() === '' || /^\d+(\.\d+)?$/.test(text.trim())
    ? ''
    : 'Enter a number such as 20 or 0.5, or leave the field empty.';
}

/** `spans_hourly` as `Spans (hourly)`. */
export function tableLabel(table: string): string {
  const text = table
    .replace(/_hourly$/, ' (hourly)')
    .replace(/_daily$/, ' (daily)')
    .replaceAll('_', ' ');
  return text.charAt(0).toUpperCase() + text.slice(1);
}
