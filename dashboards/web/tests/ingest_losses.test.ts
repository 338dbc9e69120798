import { expect, test } from 'vitest';
import type { TableAnswer } from '../src/api/query';
import { byReason, bySignal, losses, sumOf } from '../src/ingest/losses';

function answer(rows: [string[], number][]): TableAnswer {
  return {
    measures: [{ name: 'count', unit: 'count', better: 'none' }],
    rows: rows.map(([keys, count]) => ({ keys, values: [count] })),
  } as unknown as TableAnswer;
}

const found = losses(
  answer([
    [['stored', '', 'spans'], 90],
    [['rejected', 'time_out_of_range', 'spans'], 4],
    [['rejected', 'time_out_of_range', 'janks'], 1],
    [['duplicate', 'batch', 'spans'], 7],
  ]),
  answer([[['spans', 'queue_full'], 6]]),
);

test('what devices dropped counts as lost, duplicates do not', () => {
  const [spans, janks] = bySignal(found);
  expect(spans).toMatchObject({ signal: 'spans', stored: 90, duplicate: 7, rejected: 4, device: 6, lostShare: 0.1 });
  expect(janks?.lostShare).toBe(1);
  expect(sumOf(found, 'rejected')).toBe(5);
});

test('reasons list the affected signals, losses first', () => {
  expect(byReason(found).map(({ outcome, reason, count }) => [outcome, reason, count])).toEqual([
    ['device', 'queue_full', 6],
    ['rejected', 'time_out_of_range', 5],
    ['duplicate', 'batch', 7],
    ['stored', '', 90],
  ]);
  expect(byReason(found)[1]?.signals).toEqual(['spans', 'janks']);
});
