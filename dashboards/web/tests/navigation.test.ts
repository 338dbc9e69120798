import { describe, expect, it } from 'vitest';
import { chosenCount, readFilters, withValues, writeFilters } from '../src/navigation/filters';
import { bounds, readRange, relativeLength } from '../src/navigation/time_range';
import { address } from '../src/api/query';

const read = (text: string) => readFilters(new URLSearchParams(text));

describe('filters', () => {
  it('stand in the address and come back from it', () => {
    const text = 'project=shop&range=24h&app_version=4.12&app_version=4.13&os_name=ios&base_app_version=4.11';
    expect(writeFilters(read(text)).toString()).toBe(text);
    expect(read(text).chosen).toEqual({ app_version: ['4.12', '4.13'], os_name: ['ios'] });
    expect(chosenCount(read(text))).toBe(4);
  });

  it('leave alone what a page keeps in the address', () => {
    const query = new URLSearchParams('project=shop&tab=history&range=1h');
    const changed = { ...readFilters(query), project: 'other' };
    expect(writeFilters(changed, query).toString()).toBe('project=other&range=1h&tab=history');
  });

  it('take no value twice, and an empty list away', () => {
    const filters = read('app_version=1&app_version=1&app_version=');
    expect(filters.chosen.app_version).toEqual(['1']);
    expect(withValues(filters, 'app_version', []).chosen).toEqual({});
  });
});

describe('time', () => {
  it('is the last seven days unless said otherwise', () => {
    expect(readRange(new URLSearchParams('range=nonsense'))).toEqual({ kind: 'relative', text: '7d' });
    const upsideDown = 'from=2026-11-02T00:00:00Z&to=2026-11-01T00:00:00Z';
    expect(readRange(new URLSearchParams(upsideDown)).kind).toBe('relative');
  });

  it('may be relative or from one moment to another', () => {
    expect(relativeLength('24h')).toBe(86_400_000);
    expect(relativeLength('0h')).toBeNull();
    const now = new Date('2026-11-21T12:00:00Z');
    const range = bounds(read('range=1h').range, now);
    expect(range.from.toISOString()).toBe('2026-11-21T11:00:00.000Z');
    const text = 'from=2026-11-01T00%3A00%3A00Z&to=2026-11-02T00%3A00%3A00Z';
    expect(writeFilters(read(text)).toString()).toBe(text);
  });
});

describe('questions', () => {
  it('carry the filters, their own and the comparison', () => {
    const now = new Date('2026-11-21T12:00:00Z');
    const filters = read('project=shop&range=1h&page=Feed&base_app_version=4.11');
    const question = { signal: 'spans' as const, by: ['name'], order: '-change.p95_us', where: { name: 'checkout' } };
    const [path, query] = address(filters, question, '', {}, now).split('?');
    expect(path).toBe('/api/v1/projects/shop/query/spans');
    expect(Object.fromEntries(new URLSearchParams(query))).toEqual({
      from: '2026-11-21T11:00:00.000Z',
      to: '2026-11-21T12:00:00.000Z',
      page: 'Feed',
      name: 'checkout',
      by: 'name',
      order: '-change.p95_us',
      base_app_version: '4.11',
    });
    expect(address(filters, { ...question, compare: false }, '', {}, now)).not.toContain('base_app_version');
  });
});
