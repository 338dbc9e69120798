// The active installs behind a table, for the share of installs that each row affects. Tables with the same filters share a request.

import { ignored } from '../api/applicable';
import { address, get, type TableAnswer } from '../api/query';
import { loading } from '../data/loading.svelte';
import { SHARE_HINT, UNKNOWN_HINT, activeIn, shareOfInstalls } from '../format/affected';
import type { Filters } from '../navigation/filters';
import { location } from '../navigation/router.svelte';
import { activeOf, activeQuestion, type Asked } from './active_question';

export interface ActiveInstalls {
  /** Whether the table has shares, even if the shares still load. */
  readonly isKnown: boolean;
  /** The active installs of the row with these keys. `undefined` while the active installs load. */
  of: (keys: string[]) => number | null | undefined;
  /**
   * The text on the card of a measure. Empty while the share loads. `undefined` if the measure does not count installs, or if there is no
   * share.
   */
  share: (measure: string, value: number | null | undefined) => string | undefined;
  /** The period and the filters of the active installs. Empty if the active installs are unknown. */
  readonly basis: string;
  /** Explains the shares, or why there are no shares. */
  readonly hint: string | undefined;
}

const FRESH_MS = 60_000;
/** The cache is cleared when it reaches this size. */
const MOST = 50;
const remembered = new Map<string, { askedAt: number; answer: Promise<TableAnswer> }>();

export function activeInstalls(
  answer: () => Asked | undefined,
  filters: () => Filters = () => location.filters,
): ActiveInstalls {
  const asked = $derived.by(() => {
    const table = answer();
    return table && activeQuestion(table, filters());
  });
  const path = $derived(asked ? address(asked.filters, asked.question) : '');
  const found = loading(() => (path ? shared(path) : Promise.resolve(undefined)));
  const of = (keys: string[]) => {
    const table = answer();
    if (found.problem) return null;
    if (found.busy || !found.data || !table) return undefined;
    return activeOf(found.data, table, keys);
  };
  return {
    get isKnown() {
      return path !== '';
    },
    of,
    get basis() {
      const table = answer();
      return table && asked ? activeIn(table.from, table.to, asked.filters, asked.question.by) : '';
    },
    share: (measure, value) => (measure === 'installs' && path ? shareOfInstalls(value, of([])) : undefined),
    get hint() {
      if (path) return SHARE_HINT;
      return ignored(filters(), 'usage').length > 0 ? UNKNOWN_HINT : undefined;
    },
  };
}

/** Leaving the page does not abort this request, because other tables may wait for the same answer. */
function shared(path: string): Promise<TableAnswer> {
  const known = remembered.get(path);
  if (known && Date.now() - known.askedAt < FRESH_MS) return known.answer;
  if (remembered.size >= MOST) remembered.clear();
  const answer = get<TableAnswer>(path);
  remembered.set(path, { askedAt: Date.now(), answer });
  answer.catch(() => remembered.delete(path));
  return answer;
}
