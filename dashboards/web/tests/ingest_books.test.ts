import { expect, test } from 'vitest';
import { booksText, freshnessText } from '../src/ingest/books_text';

const AT = Date.UTC(2026, 10, 20, 14) * 1000;
const spans = { signal: 'spans', books: 'hours' as const, at: AT, expected: 7, found: 5 };

test('the books balance up to a time, or have not been checked yet', () => {
  const none = { difference_events: 0, differences: [] };
  expect(booksText(none)).toBe('');
  expect(booksText({ ...none, checked_to: AT })).toMatch(/^Books balanced up to 20 Nov 2026/);
});

test('the first difference is named', () => {
  const text = booksText({ checked_to: AT, difference_events: 2, differences: [spans] });
  expect(text).toMatch(/^2 events differ. First: spans, 20 Nov 2026.*, expected 7, found 5\. See all/);
});

test('the freshness is shown if something was stored', () => {
  const none = { difference_events: 0, differences: [] };
  expect(freshnessText(none)).toBe('');
  expect(freshnessText({ ...none, freshness: { p50_us: 180_000, p99_us: 2_400_000 } })).toBe(
    'In the last five minutes, half of the batches could be queried within 180 ms of their arrival, and 99 % within 2.4 s.',
  );
});
