import { expect, test } from 'vitest';
import { OUTCOMES, reasonOf } from '../src/ingest/reasons';

const SERVER = [
  'time_out_of_range',
  'duration_out_of_range',
  'sample_rate_out_of_range',
  'value_not_finite',
  'count_out_of_range',
  'name_missing',
  'invalid_event',
  'rate_limited',
  'invalid_json',
  'invalid_columns',
  'key_unknown',
  'too_many_events',
  'quota_disk',
];
const DEVICE = [
  'queue_full',
  'rate_limited',
  'disk_full',
  'memory_full',
  'disk_failed',
  'too_old',
  'refused',
  'too_large',
  'filtered',
  'too_short',
  'disabled',
  'suspended',
];
const unknown = reasonOf('rejected', 'of the future').means;

test('every code has an explanation', () => {
  for (const code of SERVER) expect(reasonOf('rejected', code).means, code).not.toBe(unknown);
  for (const code of DEVICE) expect(reasonOf('device', code).means, code).not.toBe(unknown);
  for (const [outcome, code] of [
    ['duplicate', 'batch'],
    ['dead_letter', 'refused_by_store'],
    ['stored', ''],
    ['erased', ''],
  ]) {
    expect(reasonOf(outcome!, code!).means, code).not.toBe(unknown);
  }
});

test('the same code has another meaning on a device', () => {
  expect(reasonOf('device', 'rate_limited').means).not.toBe(reasonOf('rejected', 'rate_limited').means);
});

test('a rule of the project has a text of its own', () => {
  expect(reasonOf('scrubbed', 'own_rule').means).not.toBe(reasonOf('scrubbed', 'email').means);
  expect(OUTCOMES.erased).toBe('Erased');
});
