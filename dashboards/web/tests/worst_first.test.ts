import { describe, expect, it } from 'vitest';
import { worstFirst, type Candidate } from '../src/overview/worst_first';

const candidate = (
  name: string,
  value: number | null,
  base: number | null,
  more: Partial<Candidate> = {},
): Candidate => ({
  kind: 'Span',
  name,
  measure: 'p75',
  unit: 'ms',
  value,
  base,
  installs: 100,
  baseInstalls: 100,
  enough: 20,
  least: 1,
  href: '/spans',
  ...more,
});

describe('what got worse', () => {
  it('stands in the order of its relative change', () => {
    const { worse, better } = worstFirst([
      candidate('a', 110, 100),
      candidate('b', 300, 100),
      candidate('c', 1500, 1000),
      candidate('d', 50, 100),
      candidate('e', 10, 100),
    ]);
    expect(worse.map((one) => one.name)).toEqual(['b', 'c', 'a']);
    expect(better.map((one) => one.name)).toEqual(['e', 'd']);
    expect(worse[0]!.change).toBe(2);
  });

  it('counts what has few installs apart, on either side', () => {
    const found = worstFirst([
      candidate('few now', 500, 100, { installs: 19 }),
      candidate('few before', 500, 100, { baseInstalls: 3 }),
      candidate('enough', 500, 100, { installs: 20, baseInstalls: 20 }),
    ]);
    expect(found.worse.map((one) => one.name)).toEqual(['enough']);
    expect(found.tooFew).toBe(2);
  });

  it('puts first what is new and may be', () => {
    const found = worstFirst([
      candidate('a', 300, 100),
      candidate('new', 1, 0, { mayBeNew: true, baseInstalls: 0 }),
      candidate('new to many', 1, 0, { mayBeNew: true, baseInstalls: 0, installs: 200 }),
      candidate('new to few', 1, 0, { mayBeNew: true, baseInstalls: 0, installs: 2 }),
    ]);
    expect(found.worse.map((one) => one.name)).toEqual(['new to many', 'new', 'a']);
    expect(found.tooFew).toBe(1);
  });

  it('is silent about noise, trifles and what cannot be compared', () => {
    const found = worstFirst([
      candidate('under five percent', 104, 100),
      candidate('under the least', 1.5, 1),
      candidate('new', 100, null),
      candidate('gone', null, 100),
      candidate('from nothing', 100, 0),
    ]);
    expect(found).toEqual({ worse: [], better: [], tooFew: 0 });
  });
});
