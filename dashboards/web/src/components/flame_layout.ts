// Computes the positions of the frames of a flame graph. Pure: the canvas only paints.

import type { Schemas } from '../api/client';

export type FlameNode = Schemas['FlameNode'];

export interface FlameFrame {
  node: FlameNode;
  parent: FlameFrame | null;
  depth: number;
  /** Shares of the root's width, 0 to 1. */
  start: number;
  width: number;
  index: number;
}

/** All frames, each after its parent. Scales down children that exceed their parent. */
export function layOut(root: FlameNode): FlameFrame[] {
  const frames: FlameFrame[] = [];
  const open: Omit<FlameFrame, 'index'>[] = [{ node: root, parent: null, depth: 0, start: 0, width: 1 }];
  for (let next = open.pop(); next; next = open.pop()) {
    const frame = { ...next, index: frames.length };
    frames.push(frame);
    const children = (frame.node.children ?? []).toSorted((a, b) => b.value - a.value);
    const sum = children.reduce((all, child) => all + child.value, 0);
    const whole = Math.max(frame.node.value, sum);
    let start = frame.start;
    const placed = children.map((node) => {
      const width = whole > 0 ? (frame.width * node.value) / whole : 0;
      const child = { node, parent: frame, depth: frame.depth + 1, start, width };
      start += width;
      return child;
    });
    open.push(...placed.reverse());
  }
  return frames;
}

/**
 * The position of a frame when `focus` fills the width. Ancestors of `focus` also have the full width. `null` if the frame is out of view.
 */
export function place(frame: FlameFrame, focus: FlameFrame): { x: number; width: number } | null {
  if (frame.depth <= focus.depth) return isAncestor(frame, focus) ? { x: 0, width: 1 } : null;
  const x = (frame.start - focus.start) / focus.width;
  const width = frame.width / focus.width;
  return x > -1e-9 && x + width < 1 + 1e-9 ? { x, width } : null;
}

function isAncestor(frame: FlameFrame, of: FlameFrame): boolean {
  for (let at: FlameFrame | null = of; at; at = at.parent) if (at === frame) return true;
  return false;
}

/**
 * Finds the frame `wanted` of old data in new data, by its callers. If the new data lacks the frame, returns its innermost caller that
 * exists.
 */
export function sameFrame(frames: FlameFrame[], wanted: FlameFrame | null): FlameFrame | undefined {
  if (!wanted || frames[wanted.index] === wanted) return wanted ?? undefined;
  const names: string[] = [];
  for (let at = wanted; at.parent; at = at.parent) names.unshift(at.node.name);
  let found = frames[0];
  for (const name of names) {
    const inner = frames.find((one) => one.parent === found && one.node.name === name && one.width > 0);
    if (!inner) break;
    found = inner;
  }
  return found;
}

/** The frame that an arrow key moves to. */
export function neighbour(frames: FlameFrame[], from: FlameFrame, key: string): FlameFrame | undefined {
  if (key === 'ArrowUp') return from.parent ?? undefined;
  if (key === 'ArrowDown') return frames.find((one) => one.parent === from);
  const level = frames.filter((one) => one.depth === from.depth);
  const at = level.indexOf(from);
  return level[at + (key === 'ArrowRight' ? 1 : -1)];
}

/** The self time and total time of each function. Counts a recursive function once per stack. */
export function byFunction(root: FlameNode): { name: string; self: number; total: number }[] {
  const found = new Map<string, { name: string; self: number; total: number }>();
  const on = new Map<string, number>();
  const open: { node: FlameNode; leave: boolean }[] = [{ node: root, leave: false }];
  for (let next = open.pop(); next; next = open.pop()) {
    const { node, leave } = next;
    if (leave) {
      on.set(node.name, on.get(node.name)! - 1);
      continue;
    }
    const entry = found.get(node.name) ?? { name: node.name, self: 0, total: 0 };
    found.set(node.name, entry);
    const below = (node.children ?? []).reduce((all, child) => all + child.value, 0);
    entry.self += Math.max(0, node.value - below);
    if (!on.get(node.name)) entry.total += node.value;
    on.set(node.name, (on.get(node.name) ?? 0) + 1);
    open.push({ node, leave: true }, ...(node.children ?? []).map((child) => ({ node: child, leave: false })));
  }
  return [...found.values()].toSorted((a, b) => b.total - a.total);
}
