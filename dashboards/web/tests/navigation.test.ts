import { describe, expect, it } from 'vitest';
import { chosenCount, readFilters, supportedBy, withValues, writeFilters } from '../src/navigation/filters';
import { bounds, readRange, relativeLength, wholeUnits } from '../src/navigation/time_range';
import { applicable, ignored } from '../src/api/applicable';
import { address } from '../src/api/query';
import { eventsOf } from '../src/layout/filter_values';
import { isCutByRetention, rawFilters, rawNote } from '../src/api/raw_events';
import { addressOf } from '../src/navigation/links';

const read = (text: string) => readFilters(new URLSearchParams(text));

describe('filters', () => {
  it('survive a round trip through the URL', () => {
    const text =
      'project=shop&range=24h&app_version=4.12&app_version=4.13&os_name=ios&base_app_version=4.11&compare=same_days';
    expect(writeFilters(read(text)).toString()).toBe(text);
    expect(read(text).chosen).toEqual({ app_version: ['4.12', '4.13'], os_name: ['ios'] });
    expect(chosenCount(read(text))).toBe(4);
  });

  it('keep the other parameters of the URL', () => {
    const query = new URLSearchParams('project=shop&tab=history&range=1h');
    const changed = { ...readFilters(query), project: 'other' };
    expect(writeFilters(changed, query).toString()).toBe('project=other&range=1h&tab=history');
  });

  it('ignore repeated values and remove empty lists', () => {
    const filters = read('app_version=1&app_version=1&app_version=');
    expect(filters.chosen.app_version).toEqual(['1']);
    expect(withValues(filters, 'app_version', []).chosen).toEqual({});
  });
});

describe('filters by attributes', () => {
  const text = 'project=shop&range=24h&app_version=4.12&attribute.payment=card&attribute.payment=bill';
  const filters = read(text);

  it('survive a round trip through the URL', () => {
    expect(writeFilters(filters, new URLSearchParams(`${text}&name=pay&attribute=payment`)).toString()).toBe(
      `${text}&name=pay&attribute=payment`,
    );
    expect(filters.chosen).toEqual({ app_version: ['4.12'], 'attribute.payment': ['card', 'bill'] });
    expect(chosenCount(filters)).toBe(3);
    expect(read("attribute.=1&attribute.a'b=1&contains.attribute.a=1").chosen).toEqual({});
  });

  it('belong to the pages of spans and metrics', () => {
    for (const path of ['/spans', '/traces', '/traces/1', '/resources'])
      expect(supportedBy(path, filters), path).toEqual(filters);
    for (const path of ['/', '/jank', '/sessions', '/spans-of-another-page'])
      expect(supportedBy(path, filters).chosen, path).toEqual({ app_version: ['4.12'] });
    expect(addressOf('/spans', filters)).toContain('attribute.payment=card');
    expect(addressOf('/jank', filters)).not.toContain('attribute');
    expect(addressOf('/spans', read(''), { name: 'pay', 'attribute.items': '3' })).toContain('attribute.items=3');
  });

  it('are left out of queries for signals without attributes', () => {
    expect(address(filters, { signal: 'spans' })).toContain('attribute.payment=bill');
    expect(address(filters, { signal: 'janks' })).not.toContain('attribute');
    expect(applicable(filters, 'usage').chosen).toEqual({ app_version: ['4.12'] });
    expect(ignored(filters, 'usage')).toEqual(['attribute.payment']);
    expect(ignored(filters, 'metrics')).toEqual([]);
    expect(rawFilters(filters)).toEqual(['payment']);
  });

  it('offer the attributes of the events that the page shows', () => {
    const on = (path: string, query = '') => eventsOf(path, new URLSearchParams(query));
    expect(on('/spans', 'name=pay')).toEqual({ signal: 'spans', where: { name: ['pay'] } });
    expect(on('/resources', 'metric=memory')).toEqual({ signal: 'metrics', where: { name: ['memory'] } });
    expect(on('/traces')).toEqual({ signal: 'spans', where: {} });
    expect(on('/jank')).toBeUndefined();
  });
});

describe('links', () => {
  it('make a filter of a parameter with the name of a dimension', () => {
    const filters = read('project=shop&app_version=4.12');
    expect(addressOf('/traces', filters, { session_id: 'a', order: 'latest' })).toBe(
      '/traces?project=shop&app_version=4.12&session_id=a&order=latest',
    );
    expect(addressOf('/traces', filters, new URLSearchParams('session_id=a&tab=b'))).not.toContain('session_id');
  });
});

describe('filters of raw events', () => {
  const now = new Date('2026-11-21T12:00:00Z');

  it('are named, with the period of these events', () => {
    const filters = read('range=7d&app_version=4.12&build=1&page=Feed');
    expect(rawFilters(filters)).toEqual(['Page (spans, requests and app starts)', 'Build']);
    expect(rawNote(read('range=7d&build=1'), 30, now)).toBe(
      'With the filter Build, results come from raw events, which are kept for 30 days.',
    );
    expect(rawNote(read('range=30d&build=1'), undefined, now)).toContain('come from raw events. Sessions, installs');
    expect(rawFilters(read('app_version=4.12'))).toEqual([]);
  });

  it('have no data before the retention', () => {
    expect(isCutByRetention(read('range=90d'), 30, now)).toBe(true);
    expect(isCutByRetention(read('range=30d'), 30, now)).toBe(false);
    expect(isCutByRetention(read('range=90d'), 0, now)).toBe(false);
    expect(isCutByRetention(read('range=90d'), undefined, now)).toBe(false);
  });
});

describe('time', () => {
  it('is the last seven days by default', () => {
    expect(readRange(new URLSearchParams('range=nonsense'))).toEqual({ kind: 'relative', text: '7d' });
    const upsideDown = 'from=2026-11-02T00:00:00Z&to=2026-11-01T00:00:00Z';
    expect(readRange(new URLSearchParams(upsideDown)).kind).toBe('relative');
  });

  it('may be relative or absolute', () => {
    expect(relativeLength('24h')).toBe(86_400_000);
    expect(relativeLength('0h')).toBeNull();
    const now = new Date('2026-11-21T12:00:00Z');
    const range = bounds(read('range=1h').range, now);
    expect(range.from.toISOString()).toBe('2026-11-21T11:00:00.000Z');
    const begins = (text: string) => bounds(read(`range=${text}`).range, new Date('2026-11-21T12:34:56.789Z')).from;
    expect(begins('2h').toISOString()).toBe('2026-11-21T10:34:56.789Z');
    expect(begins('24h').toISOString()).toBe('2026-11-20T12:00:00.000Z');
    expect(begins('71h').toISOString()).toBe('2026-11-18T13:00:00.000Z');
    expect(begins('3d').toISOString()).toBe('2026-11-18T00:00:00.000Z');
    expect(begins('168h')).toEqual(begins('7d'));
    const whole = wholeUnits(read('range=7d').range, new Date('2026-11-21T12:34:56.789Z'));
    expect([whole.from, whole.to]).toEqual([new Date('2026-11-14T00:00:00Z'), new Date('2026-11-22T00:00:00Z')]);
    expect(wholeUnits(read('range=24h').range, now).to).toEqual(now);
    const text = 'from=2026-11-01T00%3A00%3A00Z&to=2026-11-02T00%3A00%3A00Z';
    expect(writeFilters(read(text)).toString()).toBe(text);
  });
});

describe('queries', () => {
  it('have the filters, their own parameters and the comparison', () => {
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
      compare: 'same_age',
    });
    expect(address({ ...filters, sameDays: true }, question, '', {}, now)).toContain('compare=same_days');
    expect(address(filters, { ...question, compare: false }, '', {}, now)).not.toContain('base_app_version');
  });
});
