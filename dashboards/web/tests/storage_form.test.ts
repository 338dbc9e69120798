import { expect, test } from 'vitest';
import { daysFault, fieldsOf, gigabytesText, quotaFault, storageOf, tableLabel } from '../src/storage/storage_form';

const known = {
  keep: { raw_days: 14, hourly_days: null, daily_days: 0 },
  default_keep: { raw_days: 30, hourly_days: 90, daily_days: 400 },
  disk_bytes: 5_368_709_121,
  used_bytes: 7,
  is_over_quota: false,
  tables: [],
};

test('a form that is not edited saves what was there', () => {
  const fields = fieldsOf(known);
  expect(fields).toEqual({ raw_days: '14', hourly_days: '', daily_days: '0', gigabytes: '5.368709121' });
  expect(storageOf(fields, known)).toEqual({ keep: known.keep, disk_bytes: 5_368_709_121 });
});

test('an edited quota is in bytes, and an empty one is no limit', () => {
  const fields = fieldsOf(known);
  expect(storageOf({ ...fields, gigabytes: '0.5' }, known).disk_bytes).toBe(500_000_000);
  expect(storageOf({ ...fields, gigabytes: ' ' }, known).disk_bytes).toBeNull();
  expect([gigabytesText(20e9), gigabytesText(1), gigabytesText(0)]).toEqual(['20', '0.000000001', '0']);
});

test('only admins of the installation may keep rows longer than its retention', () => {
  expect(daysFault('31', 30, false)).toContain('longer than 30 days');
  expect(daysFault('0', 30, false)).toContain('longer than 30 days');
  for (const text of ['', '30', '7']) expect(daysFault(text, 30, false)).toBe('');
  for (const text of ['0', '400']) expect(daysFault(text, 30, true)).toBe('');
  expect(daysFault('0', 0, false)).toBe('');
});

test('a text that is not a number is rejected before it is sent', () => {
  for (const text of ['a', '1.5', '-1']) expect(daysFault(text, 30, true)).toContain('whole number');
  expect(daysFault('36501', 0, true)).toContain('36,500');
  expect(quotaFault('1e3')).not.toBe('');
  for (const text of ['', '20', '0.5']) expect(quotaFault(text)).toBe('');
});

test('tables have names for people', () => {
  expect(['spans', 'frame_windows', 'spans_hourly', 'app_starts_daily'].map(tableLabel)).toEqual([
    'Spans',
    'Frame windows',
    'Spans (hourly)',
    'App starts (daily)',
  ]);
});
