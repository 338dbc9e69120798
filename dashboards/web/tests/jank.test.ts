import { overlapping } from '../src/jank/overlapping';
import { describe, expect, it } from 'vitest';
import { headlineOf, markOf } from '../src/jank/handling';
import { ownParameters, ownWhere } from '../src/jank/own_filters';
import { isInApp, place, stackText } from '../src/jank/stack_text';
import { jankAddress } from '../src/jank/queries';
import { addressOf, comparing, only } from '../src/navigation/links';
import { readFilters } from '../src/navigation/filters';

const frame = (label: string, file = '', line = 0) => ({
  label,
  class: label.slice(0, label.lastIndexOf('.')),
  function: '',
  module: '',
  build_id: '',
  offset: 0,
  file,
  line,
  origin: 'reported' as const,
});

describe('stacks', () => {
  it('are copied as text', () => {
    const frames = [frame('a.B.c', 'B.kt', 4), frame('a.B.d', 'B.kt'), frame('x.Y.z')];
    expect(stackText(frames)).toBe('  at a.B.c (B.kt:4)\n  at a.B.d (B.kt)\n  at x.Y.z');
    expect(place(frames[2]!)).toBe('');
  });

  it('mark the frames that share the package of the culprit', () => {
    const culprit = 'com.example.shop.Cart.total';
    expect(isInApp(frame('com.example.pay.Till.open'), culprit)).toBe(true);
    expect(isInApp(frame('com.examples.Other.run'), culprit)).toBe(false);
    expect(isInApp(frame('android.os.Looper.loop'), culprit)).toBe(false);
    expect(isInApp(frame('com.example.pay.Till.open'), '')).toBe(false);
  });
});

describe('the status of a group', () => {
  const handling = { group_id: '7', state: 'resolved' as const, app_version: '4.12.0', revision: 1 };

  it('is a short mark in a list, and open groups have none', () => {
    expect(markOf(undefined)).toBeNull();
    expect(markOf({ ...handling, state: 'open' })).toBeNull();
    expect(markOf(handling)).toEqual({ text: 'resolved in 4.12.0', kind: 'good' });
    expect(markOf({ ...handling, state: 'ignored' })?.text).toBe('ignored');
    expect(markOf({ ...handling, came_back_in: '4.12.1' })).toEqual({ text: 'came back in 4.12.1', kind: 'warn' });
  });

  it('is a headline, with the decision before if the group came back', () => {
    expect(headlineOf({ group_id: '7', state: 'open', revision: 0 })).toEqual({ headline: 'Open', before: '' });
    expect(headlineOf({ group_id: '7', state: 'open', revision: 2 }).before).toBe('Reopened');
    expect(headlineOf({ ...handling, came_back_in: '4.12.1' })).toEqual({
      headline: 'Came back in 4.12.1',
      before: 'Resolved in 4.12.0',
    });
    expect(headlineOf({ ...handling, state: 'ignored' }).headline).toBe(
      'Ignored until it occurs in a version after 4.12.0',
    );
  });
});

describe('addresses', () => {
  const filters = readFilters(new URLSearchParams('project=p&range=30d&os_name=android&app_version=1.0'));

  it('keep the filters and change one', () => {
    expect(addressOf('/frames', only(filters, 'page', 'Cart'), { measure: 'fps' })).toBe(
      '/frames?project=p&range=30d&app_version=1.0&os_name=android&page=Cart&measure=fps',
    );
  });

  it('compare a pair of versions', () => {
    const compared = comparing(filters, { app: 'shop', latest: '2.0', previous: '1.9' });
    expect(addressOf('/', compared)).toBe(
      '/?project=p&range=30d&app_id=shop&app_version=2.0&os_name=android&base_app_version=1.9',
    );
  });

  it('of files and stacks have the group and, only on request, the base', () => {
    const compared = { ...filters, baseVersion: '0.9' };
    const file = jankAddress(compared, 'folded', { where: { group_id: '7' } });
    expect(file).toMatch(/^\/api\/v1\/projects\/p\/janks\/folded\?/);
    expect(new URLSearchParams(file.split('?')[1]).get('group_id')).toBe('7');
    expect(file).not.toContain('base_app_version');
    expect(jankAddress(compared, 'flame', { compare: true })).toContain('base_app_version=0.9');
  });
});

describe('the filters of janks', () => {
  it('leave out samples that missed the stall by default', () => {
    expect(ownWhere(new URLSearchParams(''))).toEqual({ not_a_cause: 'false', group_status: 'open' });
    expect(ownWhere(new URLSearchParams('status=ignored')).group_status).toBe('ignored');
    expect(ownWhere(new URLSearchParams('causes=all&status=all&kind=anr&category=JSON&tab=flame'))).toEqual({
      kind: 'anr',
      category: 'JSON',
    });
    expect(ownParameters(new URLSearchParams('causes=all&kind=anr&tab=flame'))).toEqual({ kind: 'anr', causes: 'all' });
  });

  it('include the strategy, which links keep', () => {
    const query = new URLSearchParams('strategy=5x300ms&owner=Team+Cart&kind=anr');
    expect(ownWhere(query).strategy).toBe('5x300ms');
    expect(ownParameters(query).strategy).toBe('5x300ms');
    expect(ownParameters(query, ['owner', 'strategy'])).toEqual({ owner: 'Team Cart', strategy: '5x300ms' });
  });
});

describe('the traces of a jank', () => {
  const span = (trace_id: string, ms: number, duration_ms: number) => ({
    ...{ trace_id, span_id: `${trace_id}-${ms}`, thread: 'main', on_main_thread: true },
    start: new Date(Date.UTC(2026, 0, 1, 0, 0, 0, ms)).toISOString(),
    duration_us: duration_ms * 1000,
  });

  it('are those with a span that runs while it lasts, each with its longest span', () => {
    const stall = { start: '2026-01-01T00:00:00.500Z', duration_ms: 300 };
    const spans = [
      ...[span('before', 100, 400), span('after', 800, 50), span('a', 450, 400), span('a', 460, 90)],
      span('b', 700, 500),
    ];
    expect(overlapping(spans, stall).map(({ span_id }) => span_id)).toEqual(['b-700', 'a-450']);
  });
});
