// The flame graph of the spans of one name, and its files.

import type { Schemas } from '../api/client';
import { address, get } from '../api/query';
import type { FlameNode } from '../components/flame_layout';
import type { Filters } from '../navigation/filters';

export type SpanFlame = Schemas['SpanFlameGraph'];

export function flameAddress(filters: Filters, name: string, kind: 'flame' | 'folded' | 'speedscope'): string {
  // A base has no counterpart without a chosen version. Files have no base.
  const compare = kind === 'flame' && filters.chosen.app_version !== undefined;
  const question = { signal: 'spans' as const, where: { name }, compare };
  return address(filters, question, `/${kind}`).replace('/query/spans/', '/spans/');
}

export function askFlame(filters: Filters, name: string, signal: AbortSignal): Promise<SpanFlame> {
  return get(flameAddress(filters, name, 'flame'), signal);
}

/** The tree with means per span, so that two versions with a different number of spans are comparable. */
export function perSpan({ root, represented, base_represented }: SpanFlame): FlameNode {
  const mean = (node: FlameNode): FlameNode => ({
    ...node,
    value: node.value / (represented || 1),
    base: typeof node.base === 'number' ? node.base / (base_represented || 1) : undefined,
    children: node.children?.map(mean),
  });
  return mean(root);
}

/** The change of a node against the base, as a share of the mean duration in the base. 0 without a base. */
export function changeOf(node: FlameNode, root: FlameNode): number {
  return root.base ? (node.value - (node.base ?? 0)) / root.base : 0;
}
