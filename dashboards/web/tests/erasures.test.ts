import { expect, test } from 'vitest';
import {
  byTable,
  installIdFault,
  isUnfinished,
  rowsOf,
  stepText,
  underWayText,
  whatText,
  type Erasure,
} from '../src/erasures/erasures';

const done: Erasure = {
  id: '1',
  project: 'shop',
  kind: 'install',
  subject: '0b5a6b9e-6a53-4d3c-9a3c-1d2f6a1e7c11',
  requested_at: 1,
  requested_by: 'user:1',
  state: 'done',
  finished_at: 2,
  receipt: {
    rows: { janks: 2, spans: 40, usage: 2 },
    is_scrubbed: false,
    stacks: 1,
    dead_letters: 0,
    rebuilt_hours: 3,
    step: '',
    error: null,
  },
};
const running: Erasure = { ...done, state: 'running', receipt: { ...done.receipt, step: 'deleting rows of spans' } };

test('rows are summed, and listed with the most first', () => {
  expect(rowsOf(done)).toBe(44);
  expect(byTable(done).map(({ table }) => table)).toEqual(['spans', 'janks', 'usage']);
  expect(rowsOf({ ...done, receipt: { ...done.receipt, rows: {} } })).toBe(0);
});

test('a subject that the server removed is not shown as empty', () => {
  expect(whatText(done)).toContain('0b5a6b9e');
  expect(whatText({ ...done, subject: null })).toBe('Install (id removed)');
  expect(whatText({ ...done, kind: 'project', subject: null })).toBe('Whole project shop');
});

test('the current step is shown with its error', () => {
  expect(stepText(running)).toBe('Deleting rows of spans');
  expect(stepText({ ...running, receipt: { ...running.receipt, error: 'ClickHouse: gone' } })).toBe(
    'Retrying: ClickHouse: gone',
  );
  expect(stepText({ ...running, state: 'waiting', receipt: done.receipt })).toBe('Starts within seconds');
  expect(stepText(done)).toBe('');
  expect([isUnfinished([done]), isUnfinished([done, running])]).toEqual([false, true]);
  expect([underWayText([done]), underWayText([done, running])]).toEqual(['', '1 under way']);
});

test('only a UUID is an install id', () => {
  for (const text of ['', 'install', '0b5a6b9e-6a53-4d3c-9a3c']) expect(installIdFault(text), text).not.toBe('');
  const forms = [
    ' 0B5A6B9E-6a53-4d3c-9a3c-1d2f6a1e7c11 ',
    '{0B5A6B9E-6A53-4D3C-9A3C-1D2F6A1E7C11}',
    '0b5a6b9e6a534d3c9a3c1d2f6a1e7c11',
  ];
  for (const text of forms) expect(installIdFault(text), text).toBe('');
});
