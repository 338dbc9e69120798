import { describe, expect, it } from 'vitest';
import { activeOf, changesOf, clashesOf, exceptionsAbove } from '../src/config/changes';
import { ratesOf } from '../src/config/span_rates';

function texts(before: unknown, after: unknown): string[] {
  return changesOf(before, after).map(
    ({ place, before: old, after: now }) => `${place.join(' › ')}: ${old === undefined ? '' : `${old} → `}${now}`,
  );
}

const OVERRIDE = { id: 'beta', when: { app_version: '>=4.12' }, patch: { sampling: { spans: { default: 0.1 } } } };

describe('the values that the devices of an override have without it', () => {
  const spans = (rate: number) => ({ sampling: { spans: { overrides: [{ name: 'checkout*', rate }] } } });
  const overrides = [
    { id: 'every', when: { app_version: '>=4.12' }, patch: spans(1) },
    { id: 'half', when: { app_version: '=4.12.0' }, patch: spans(0.5) },
  ];
  const matches = (both: number) => [{ id: 'half', installs: 40, earlier: [{ value: 'every', installs: both }] }];
  const base = { sampling: { spans: { overrides: [] } } };

  it('are those of an earlier override that matches all of them', () => {
    const [first, second] = activeOf(base, overrides, matches(40));
    expect(first).toEqual({ values: base, from: 'Base' });
    expect(second).toEqual({ values: spans(1), from: 'Active value' });
    const active = new Map([['half', second!]]);
    const [, change] = changesOf({ overrides: overrides.slice(0, 1) }, { overrides }, active);
    expect(change).toMatchObject({ before: 'checkout* 100 % (active value)', after: 'checkout* 50 %' });
  });

  it('are those of the base if the earlier override matches only some of them, or if that is not known', () => {
    expect(activeOf(base, overrides, matches(39))[1]).toEqual({ values: base, from: 'Base' });
    expect(activeOf(base, overrides, [])[1]).toEqual({ values: base, from: 'Base' });
  });

  it('clash only with overrides that match some of the installs', () => {
    expect(clashesOf(overrides, matches(39))[1]).toMatchObject([{ id: 'every', installs: 39 }]);
    expect(clashesOf(overrides, [{ id: 'half', installs: 40, earlier: [] }])[1]).toEqual([]);
  });
});

describe('the rate of a span', () => {
  const spans = (list: object[]) => ({ sampling: { spans: { default: 0.01, overrides: list } } });

  it('is that of the first glob that matches its whole name', () => {
    const base = spans([{ name: 'check?ut', rate: 0.2 }]);
    const patch = spans([{ name: 'CHECK*', rate: 1 }]);
    expect(
      ratesOf('checkout', base, [
        { id: 'a', patch },
        { id: 'b', patch: { enabled: false } },
      ]),
    ).toEqual([{ rate: 0.2 }, { override: 'a', rate: 1 }]);
    expect(ratesOf('checkouts', base, [])).toEqual([{ rate: 0.01 }]);
    expect(
      ratesOf(
        'a.b',
        spans([
          { name: 'a+b', rate: 1 },
          { name: 'a.b', rate: 0.5 },
        ]),
        [],
      ),
    ).toEqual([{ rate: 0.5 }]);
  });
});

describe('changes of a configuration', () => {
  it('names each field as the form does, with the values before and after', () => {
    const before = { base: { sampling: { spans: { default: 0.01 } } }, overrides: [] };
    const after = { base: { poll_interval_s: 600, sampling: { spans: { default: 0.2 } } }, overrides: [] };
    expect(texts(before, after)).toEqual([
      'Base › Poll interval: 900 s (default) → 600 s',
      'Base › Sampling › Spans › Default: 1 % → 20 %',
    ]);
    expect(texts(after, before)).toEqual([
      'Base › Poll interval: 600 s → 900 s (default)',
      'Base › Sampling › Spans › Default: 20 % → 1 %',
    ]);
  });

  it('names overrides that are added, removed, switched, changed and moved', () => {
    const base = { sampling: { spans: { default: 0.05 } } };
    const other = { id: 'other', when: { network: ['wifi'] }, patch: {} };
    expect(texts({ base, overrides: [] }, { base, overrides: [OVERRIDE] })).toEqual([
      'Override “beta”: added',
      'Override “beta” › Sampling › Spans › Default: 5 % (base) → 10 %',
    ]);
    expect(texts({ base, overrides: [OVERRIDE] }, { base, overrides: [] })).toEqual(['Override “beta”: removed']);
    const switched = { ...OVERRIDE, enabled: false, when: { app_version: '>=4.13' }, note: 'later' };
    expect(texts({ base, overrides: [OVERRIDE] }, { base, overrides: [switched] })).toEqual([
      'Override “beta”: on → off',
      'Override “beta” › Condition: changed',
      'Override “beta” › Note: changed',
    ]);
    expect(texts({ base, overrides: [OVERRIDE, other] }, { base, overrides: [other, OVERRIDE] })).toEqual([
      'Order of the overrides: changed',
    ]);
  });

  it('shows short lists whole, and says that a long one changed although it is as long as before', () => {
    const named = (rate: number, names: string[]) => ({
      base: { sampling: { spans: { overrides: names.map((name) => ({ name, rate })) } } },
    });
    expect(texts(named(0.5, ['pay']), named(1, ['pay']))).toEqual([
      'Base › Sampling › Spans › Rates for specific spans: pay 50 % → pay 100 %',
    ]);
    const many = ['a', 'b', 'c', 'd'];
    expect(texts(named(0.5, many), named(1, many))).toEqual([
      'Base › Sampling › Spans › Rates for specific spans: 4 in the list, changed',
    ]);
  });

  it('says nothing about configurations that are the same', () => {
    const one = { base: { jank: { hang_ms: 5, enabled: true } }, overrides: [OVERRIDE] };
    const same = { base: { jank: { enabled: true, hang_ms: 5 } }, overrides: [OVERRIDE] };
    expect(texts(one, same)).toEqual([]);
  });
});

describe('values that several overrides set', () => {
  const spans = (value: object) => ({ sampling: { spans: value } });
  const exceptions = { id: 'low-end', patch: spans({ overrides: [{ name: 'checkout*', rate: 1 }] }) };

  it('are named with the earlier override', () => {
    const later = { id: 'beta', patch: spans({ overrides: [], default: 0.2 }) };
    expect(clashesOf([exceptions, later])).toEqual([
      [],
      [{ id: 'low-end', place: ['Sampling', 'Spans', 'Rates for specific spans'], value: 'checkout* 100 %' }],
    ]);
  });

  it('are no clash if the earlier override is off or sets other fields', () => {
    const later = { id: 'beta', patch: spans({ default: 0.2 }) };
    expect(clashesOf([exceptions, later])).toEqual([[], []]);
    const same = { ...exceptions, id: 'beta' };
    expect(clashesOf([{ ...exceptions, enabled: false }, same])).toEqual([[], []]);
  });

  it('are those of the last override before', () => {
    const [one, two] = ['one', 'two'].map((id) => ({ ...exceptions, id }));
    expect(clashesOf([exceptions, one!, two!]).map((list) => list.map(({ id }) => id))).toEqual([
      [],
      ['low-end'],
      ['one'],
    ]);
  });

  it('name exceptions that still apply beside a new default', () => {
    const later = { id: 'beta', patch: spans({ default: 0.2 }) };
    const found = { place: ['Sampling', 'Spans', 'Rates for specific spans'], value: 'checkout* 100 %' };
    expect(exceptionsAbove({}, [exceptions, later])).toEqual([[], [{ id: 'low-end', ...found }]]);
    expect(exceptionsAbove(exceptions.patch, [later])).toEqual([[{ id: '', ...found }]]);
    expect(exceptionsAbove({}, [later, exceptions])).toEqual([[], []]);
    const none = { id: 'none', patch: spans({ overrides: [] }) };
    expect(exceptionsAbove({}, [exceptions, none, later])).toEqual([[], [], []]);
    expect(exceptionsAbove({}, [{ ...exceptions, enabled: false }, later])).toEqual([[], []]);
  });

  it('may be half typed', () => {
    const typed = [null, 'pay', [], {}, 7].map((entry) => ({ id: 'beta', patch: spans({ overrides: [entry] }) }));
    const odd = [null, [], 'text', { sampling: null }, { sampling: [] }].map((patch) => ({ id: 'odd', patch }));
    expect(clashesOf([...typed, ...odd])).toHaveLength(10);
    expect(exceptionsAbove(null, [...typed, ...odd])).toHaveLength(10);
  });
});
