import { expect, it } from 'vitest';
import { byFunction, layOut, neighbour, place, sameFrame } from '../src/components/flame_layout';

const root = {
  name: 'all',
  value: 100,
  children: [
    { name: 'main', value: 60, children: [{ name: 'parse', value: 30, children: [{ name: 'main', value: 10 }] }] },
    { name: 'idle', value: 40 },
  ],
};

it('frames are as wide as their share, the widest first', () => {
  const frames = layOut(root);
  expect(frames.map(({ node, depth, start, width }) => [node.name, depth, start, width])).toEqual([
    ['all', 0, 0, 1],
    ['main', 1, 0, 0.6],
    ['parse', 2, 0, 0.3],
    ['main', 3, 0, 0.1],
    ['idle', 1, 0.6, 0.4],
  ]);
});

it('a zoom fills the width with a frame, keeps its callers and hides its siblings', () => {
  const [all, main, parse, , idle] = layOut(root);
  expect(place(all!, main!)).toEqual({ x: 0, width: 1 });
  expect(place(main!, main!)).toEqual({ x: 0, width: 1 });
  expect(place(parse!, main!)).toEqual({ x: 0, width: 0.5 });
  expect(place(idle!, main!)).toBeNull();
});

it('arrow keys move between frames', () => {
  const frames = layOut(root);
  expect(neighbour(frames, frames[1]!, 'ArrowRight')?.node.name).toBe('idle');
  expect(neighbour(frames, frames[1]!, 'ArrowDown')?.node.name).toBe('parse');
  expect(neighbour(frames, frames[0]!, 'ArrowUp')).toBeUndefined();
});

it('a function that calls itself is counted once', () => {
  expect(byFunction(root).find(({ name }) => name === 'main')).toEqual({ name: 'main', self: 40, total: 60 });
});

it('other data keeps the chosen frame, or the innermost of its callers that takes time there', () => {
  const chosen = layOut(root)[3]!;
  expect(chosen.node.value).toBe(10);
  const chainIn = (other: typeof root) => {
    const names: string[] = [];
    const found = sameFrame(layOut(other), chosen);
    for (let at = found ?? null; at; at = at.parent) names.unshift(at.node.name);
    return names;
  };
  expect(chainIn(structuredClone(root))).toEqual(['all', 'main', 'parse', 'main']);
  const idle = { name: 'all', value: 5, children: [{ name: 'main', value: 0 }] };
  expect(chainIn(idle)).toEqual(['all']);
  expect(chainIn({ name: 'all', value: 9, children: [{ name: 'main', value: 9 }] })).toEqual(['all', 'main']);
});
