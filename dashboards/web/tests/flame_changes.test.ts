import { describe, expect, it } from 'vitest';
import { fromBase, functionChanges, shareChange } from '../src/jank/flame_changes';

const root = {
  name: 'all',
  value: 100,
  base: 200,
  children: [
    {
      name: 'main',
      value: 100,
      base: 200,
      children: [
        { name: 'draw', value: 60, base: 20 },
        { name: 'parse', value: 40, base: 80 },
        { name: 'sync', value: 0, base: 100 },
      ],
    },
  ],
};

describe('the difference of two flame graphs', () => {
  it('compares shares, so that more use does not make a version worse', () => {
    const changes = functionChanges(root);
    expect(changes.map(({ name, verdict }) => [name, verdict])).toEqual([
      ['draw', 'more'],
      ['main', 'same'],
      ['parse', 'same'],
      ['sync', 'gone'],
    ]);
    expect(changes[0]).toMatchObject({ share: 0.6, baseShare: 0.1, change: 0.5 });
  });

  it('leaves out changes below five percent, which count nowhere else', () => {
    const children = [
      { name: 'loop', value: 96, base: 93 },
      { name: 'sync', value: 4, base: 7 },
    ];
    expect(functionChanges({ name: 'all', value: 100, base: 100, children })).toMatchObject([
      { name: 'loop', verdict: 'same' },
      { name: 'sync', verdict: 'less' },
    ]);
  });

  it('marks new functions', () => {
    const fresh = {
      name: 'all',
      value: 10,
      base: 10,
      children: [
        { name: 'new', value: 5 },
        { name: 'old', value: 5, base: 10 },
      ],
    };
    expect(functionChanges(fresh).find((one) => one.name === 'new')?.verdict).toBe('new');
  });

  it('counts a function that calls itself once', () => {
    const inner = { name: 'walk', value: 5, base: 5 };
    const tree = {
      name: 'all',
      value: 10,
      base: 10,
      children: [{ name: 'walk', value: 10, base: 10, children: [inner] }],
    };
    expect(functionChanges(tree)).toMatchObject([{ name: 'walk', share: 1, baseShare: 1, verdict: 'same' }]);
  });

  it('is the same from the side of the base, where functions that are gone have a width', () => {
    const before = fromBase(root);
    expect(before.children?.[0]?.children?.map((one) => one.value)).toEqual([20, 80, 100]);
    const [draw, parse, sync] = before.children![0]!.children!.map((one) => shareChange(one, before));
    expect([draw, parse, sync]).toEqual([-0.5, 0, 0.5]);
    expect(fromBase(before)).toMatchObject(root);
  });

  it('is no change without a base', () => {
    expect(shareChange(root.children[0]!.children[0]!, root)).toBeCloseTo(0.5);
    expect(shareChange({ name: 'a', value: 5 }, { name: 'all', value: 10 })).toBe(0.5);
  });
});
