import { describe, expect, it } from 'vitest';
import { readFilters } from '../src/navigation/filters';
import { changeOf, flameAddress, perSpan } from '../src/spans/span_flame';

const flame = {
  unit: 'us',
  stacks: 2,
  spans: 2,
  represented: 20,
  base_spans: 4,
  base_represented: 4,
  root: {
    name: 'all',
    value: 2_000,
    base: 200,
    children: [
      { name: 'pay', value: 1_500, base: 200 },
      { name: 'write', value: 500, base: 0 },
    ],
  },
};

describe('the flame graph of a span', () => {
  it('has means per span, so that more use does not make a version worse', () => {
    const root = perSpan(flame);
    expect([root.value, root.base]).toEqual([100, 50]);
    expect(root.children?.map(({ value, base }) => [value, base])).toEqual([
      [75, 50],
      [25, 0],
    ]);
    expect(changeOf(root.children![0]!, root)).toBe(0.5);
    const alone = perSpan({ ...flame, base_represented: undefined, root: { name: 'all', value: 40 } });
    expect([alone.value, alone.base, changeOf(alone, alone)]).toEqual([2, undefined, 0]);
  });

  it('has a base only if a version is chosen, and files have none', () => {
    const filters = (query: string) => readFilters(new URLSearchParams(`project=p&base_app_version=1&${query}`));
    const chosen = flameAddress(filters('app_version=2'), 'a b', 'flame');
    expect(chosen).toMatch(/^\/api\/v1\/projects\/p\/spans\/flame\?.*name=a\+b.*base_app_version=1/);
    expect(flameAddress(filters(''), 'a', 'flame')).not.toContain('base_app_version');
    expect(flameAddress(filters('app_version=2'), 'a', 'folded')).not.toContain('base_app_version');
  });
});
