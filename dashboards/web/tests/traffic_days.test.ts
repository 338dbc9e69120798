import { expect, test } from 'vitest';
import { readFilters } from '../src/navigation/filters';
import { everyDay, onDay, stack } from '../src/traffic/days';

test('days without traffic stay as gaps', () => {
  expect(everyDay(['2026-03-02', '2026-02-27', ''])).toEqual(['2026-02-27', '2026-02-28', '2026-03-01', '2026-03-02']);
  expect(everyDay([])).toEqual([]);
});

test('a day begins and ends at midnight, whatever the period', () => {
  const { range, chosen, baseVersion } = onDay(
    readFilters(new URLSearchParams('range=30d&os_name=ios&base_app_version=1')),
    '2026-11-20',
  );
  expect(range).toEqual({
    kind: 'absolute',
    from: new Date('2026-11-20T00:00:00Z'),
    to: new Date('2026-11-21T00:00:00Z'),
  });
  expect(chosen).toEqual({ os_name: ['ios'] });
  expect(baseVersion).toBe('');
});

test('parts are stacked, the largest first, and many small ones together', () => {
  const parts = [
    { category: 'a', name: 'api', value: 1 },
    { category: 'b', name: 'cdn', value: 5 },
    { category: 'a', name: 'cdn', value: 5 },
    { category: 'b', name: 'web', value: 2 },
    { category: 'gone', name: 'web', value: 9 },
  ];
  expect(stack(parts, ['a', 'b'])).toEqual([
    { label: 'cdn', values: [5, 5] },
    { label: 'web', values: [0, 2] },
    { label: 'api', values: [1, 0] },
  ]);
  expect(stack(parts, ['a', 'b'], 1).at(-1)).toEqual({ label: '2 others', values: [1, 2] });
});
