// Asks the server which changes are significant, once the numbers are on the screen.

import { querySignificance, valueOf, type Question, type SignificanceAnswer, type TableAnswer } from '../api/query';
import { loadingFirst } from '../data/loading.svelte';
import type { Filters } from '../navigation/filters';
import { location } from '../navigation/router.svelte';
import { isNoticeable, type Significant } from './change';

export interface ChangeTests {
  of: (keys: string[], measure: string) => Significant;
}

/** An answer that may still load. */
interface Answer {
  readonly data: TableAnswer | undefined;
  readonly busy: boolean;
}

/**
 * Tests the measures that the question names, or all measures of the answer if it names none. Sends no request if no change is large
 * enough.
 */
export function changeTests(
  answer: Answer,
  question: () => Question,
  filters: () => Filters = () => location.filters,
): ChangeTests {
  const found = loadingFirst(async (signal): Promise<Tested | null> => {
    const { data } = answer;
    if (!data || answer.busy) return null;
    return tested(filters(), question(), data, signal);
  });
  return {
    of(keys, measure) {
      // If the test failed, the change has no colour.
      if (found.problem) return null;
      if (found.busy || answer.busy || !found.data) return undefined;
      return found.data.get(JSON.stringify(keys))?.get(measure) ?? null;
    },
  };
}

/** Tests the measures of an answer. `null` if no change is large enough. */
export async function tested(
  filters: Filters,
  question: Question,
  answer: TableAnswer,
  signal: AbortSignal,
): Promise<Tested | null> {
  const measures = toTest(answer).filter((one) => question.measures?.includes(one) ?? true);
  if (measures.length === 0) return null;
  const asked = { ...question, measures, order: undefined, limit: undefined, atLeastSamples: undefined };
  return byKeys(await querySignificance(filters, asked, signal));
}

export type Tested = Map<string, Map<string, boolean | null>>;

/** The measures with a large enough change in at least one row. */
export function toTest(answer: TableAnswer): string[] {
  return answer.measures
    .filter(({ name, unit, better }) => {
      if (better === 'none') return false;
      return answer.rows.some((row) => {
        const [now, base] = [valueOf(answer, row, name), valueOf(answer, row, name, 'base')];
        return now !== null && base !== null && isNoticeable(now, base, unit);
      });
    })
    .map(({ name }) => name);
}

function byKeys({ level, measures, rows }: SignificanceAnswer): Tested {
  return new Map(
    rows.map(({ keys, p }) => [
      JSON.stringify(keys),
      new Map(measures.map(({ name }, place) => [name, isBelow(p[place], level)])),
    ]),
  );
}

function isBelow(p: number | null | undefined, level: number): boolean | null {
  return p === null || p === undefined ? null : p < level;
}
