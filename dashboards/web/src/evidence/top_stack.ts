// The stack with the most lost time, as lines of a report.

import { jankStacks, type Where } from '../jank/queries';
import { stackText } from '../jank/stack_text';
import type { Filters } from '../navigation/filters';
import type { Evidence } from './markdown';

export async function topStack(
  filters: Filters,
  where: Where,
  title: string,
  signal: AbortSignal,
): Promise<Evidence['stack']> {
  const { stacks } = await jankStacks(filters, { where, limit: 1 }, signal);
  const frames = stacks[0]?.frames ?? [];
  return frames.length > 0 ? { title, lines: stackText(frames).split('\n') } : undefined;
}
