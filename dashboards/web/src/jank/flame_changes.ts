// Compares two versions of a flame graph by each function's share of the lost time. Pure.

import { byFunction, type FlameNode } from '../components/flame_layout';
import { isNoticeable } from '../versions/change';

export interface FunctionChange {
  name: string;
  /** Shares of the total time lost on each side, including callees. */
  share: number;
  baseShare: number;
  /** The difference of the shares: 0.1 is ten points more. */
  change: number;
  verdict: 'new' | 'gone' | 'more' | 'less' | 'same';
}

/** Smaller differences count as no change. */
const LEAST = 0.005;

/** The same comparison with both sides swapped, so that functions that are gone have a width. */
export function fromBase(node: FlameNode): FlameNode {
  return { name: node.name, value: node.base ?? 0, base: node.value, children: node.children?.map(fromBase) };
}

/** How much the frame's share of the total time grew since the base: 0.1 is ten points. */
export function shareChange(node: FlameNode, root: FlameNode): number {
  const share = root.value > 0 ? node.value / root.value : 0;
  return share - (root.base ? (node.base ?? 0) / root.base : 0);
}

export function functionChanges(root: FlameNode): FunctionChange[] {
  const before = new Map(byFunction(fromBase(root)).map((one) => [one.name, one.total]));
  const [whole, baseWhole] = [root.value, root.base ?? 0];
  return byFunction(root)
    .filter((one) => one.name !== root.name)
    .map(({ name, total }) => {
      const base = before.get(name) ?? 0;
      const share = whole > 0 ? total / whole : 0;
      const baseShare = baseWhole > 0 ? base / baseWhole : 0;
      const change = share - baseShare;
      return { name, share, baseShare, change, verdict: verdictOf(share, baseShare) };
    })
    .toSorted((a, b) => b.change - a.change);
}

function verdictOf(share: number, base: number): FunctionChange['verdict'] {
  if (base === 0 && share > 0) return 'new';
  if (share === 0 && base > 0) return 'gone';
  if (Math.abs(share - base) < LEAST || !isNoticeable(share, base, 'share')) return 'same';
  return share > base ? 'more' : 'less';
}
