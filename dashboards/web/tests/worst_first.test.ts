import { describe, expect, it } from 'vitest';
import { chosenOf, worstFirst, type Candidate } from '../src/overview/worst_first';

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
  active: 400,
  significant: true,
  least: 1,
  href: '/spans',
  ...more,
});

describe('what got worse', () => {
  it('is ordered by its relative change', () => {
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

  it('counts candidates with few samples and within chance separately', () => {
    const found = worstFirst([
      candidate('few', 500, 100, { few: true }),
      candidate('chance', 500, 100, { significant: false }),
      candidate('no test', 500, 100, { significant: null }),
      candidate('enough', 500, 100),
    ]);
    expect(found.worse.map((one) => one.name)).toEqual(['enough']);
    expect([found.tooFew, found.byChance]).toEqual([1, 2]);
  });

  it('puts new candidates first', () => {
    const found = worstFirst([
      candidate('a', 300, 100),
      candidate('new', 1, 0, { isNew: true }),
      candidate('new to many', 1, 0, { isNew: true, installs: 200 }),
      candidate('new to few', 1, 0, { isNew: true, few: true }),
    ]);
    expect(found.worse.map((one) => one.name)).toEqual(['new to many', 'new', 'a']);
    expect(found.tooFew).toBe(1);
  });

  it('is limited to a kind and to an owner', () => {
    const { worse } = worstFirst([
      candidate('span', 300, 100),
      candidate('ours', 300, 100, { kind: 'Jank', owner: 'Team Cart' }),
      candidate('theirs', 300, 100, { kind: 'Jank', owner: 'Team Feed' }),
    ]);
    const names = (kind: string, owner: string) => chosenOf(worse, { kind, owner }).map((one) => one.name);
    expect(names('', '')).toEqual(['span', 'ours', 'theirs']);
    expect(names('Jank', '')).toEqual(['ours', 'theirs']);
    expect(names('', 'Team Cart')).toEqual(['ours']);
  });

  it('leaves out noise, trifles and candidates without a base', () => {
    const found = worstFirst([
      candidate('under five percent', 104, 100),
      candidate('under the least', 1.5, 1),
      candidate('not measured before', 100, null),
      candidate('gone', null, 100),
    ]);
    expect(found).toEqual({ worse: [], better: [], tooFew: 0, byChance: 0 });
  });
});
