// Queries for the details of janks: stacks, flame graphs, individual janks and files.

import type { Schemas } from '../api/client';
import { address, get } from '../api/query';
import type { Filters } from '../navigation/filters';

export type JankEvent = Schemas['JankEvent'];
export type Stack = Schemas['StackBody'];
export type StackFrame = Schemas['FrameBody'];
export type Where = Record<string, string | string[]>;

export type Flame = Schemas['FlameGraph'];

interface Asked {
  where?: Where;
  limit?: number;
  compare?: boolean;
}

export function jankAddress(
  filters: Filters,
  kind: 'stacks' | 'flame' | 'folded' | 'speedscope' | 'events',
  asked: Asked,
): string {
  const question = {
    signal: 'janks' as const,
    where: asked.where,
    limit: asked.limit,
    compare: asked.compare ?? false,
  };
  return address(filters, question, `/${kind}`).replace('/query/janks/', '/janks/');
}

export function jankStacks(filters: Filters, asked: Asked, signal: AbortSignal): Promise<{ stacks: Stack[] }> {
  return get(jankAddress(filters, 'stacks', asked), signal);
}

export function jankFlame(filters: Filters, asked: Asked, signal: AbortSignal): Promise<Flame> {
  return get(jankAddress(filters, 'flame', asked), signal);
}

export function jankEvents(filters: Filters, asked: Asked, signal: AbortSignal): Promise<{ events: JankEvent[] }> {
  return get(jankAddress(filters, 'events', asked), signal);
}
