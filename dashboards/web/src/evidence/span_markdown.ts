// A span as Markdown: the numbers of both compared versions, and the functions inside the span whose times changed most. Pure.

import type { TableAnswer } from '../api/query';
import { splitName } from '../format/measures';
import type { Filters } from '../navigation/filters';
import { changeOfSpan, chanceText, explains, isCertain, moves, verdict, type Inside, type Move } from '../spans/inside';
import type { Evidence as Significance } from '../versions/change';
import { fixedAddress, seenFacts, seenFilters } from './fixed_time';
import { markdown } from './markdown';
import { measureRows } from './measures';

/** The times inside a span, and the owners of the functions. */
export interface Moved {
  inside: Inside;
  owners: Map<string, string>;
}

/** The maximum number of functions to name. */
export const MOST_MOVES = 3;

export function spanAsMarkdown(
  name: string,
  answer: TableAnswer,
  filters: Filters,
  origin: string,
  moved?: Moved,
  evidence?: (measure: string) => Significance,
): string {
  const row = answer.rows[0] ?? { keys: [], values: [] };
  const labels = { now: filters.chosen.app_version?.join(', ') ?? 'Now', base: filters.baseVersion };
  const seen = seenFilters(filters, answer);
  return markdown(
    {
      title: `Span ${name}`,
      about: moved && filters.baseVersion ? sentences(name, moved) : [],
      facts: seenFacts(filters, answer),
      table: measureRows(answer, row, labels, evidence),
      links: [
        { label: 'Span', path: fixedAddress('/spans', seen, { name }) },
        { label: 'Traces', path: fixedAddress('/traces', seen, { name }) },
      ],
    },
    origin,
  );
}

function sentences(name: string, { inside, owners }: Moved): string[] {
  const all = changeOfSpan(inside, name);
  return moves(inside, MOST_MOVES)
    .filter(({ row, p }) => row.name !== name && isCertain(p))
    .map((move) => sentence(move, explains(move.change, all), owners.get(move.row.name)));
}

function sentence({ row, thread, p }: Move, explained: string, owner: string | undefined): string {
  const how = verdict(row) || (thread ? `moved ${thread}` : 'takes a different time');
  const parts = [
    `${splitName(row.name).short}: ${how}`,
    explained && `explains ${explained} of the change per traced span`,
    chanceText(p),
    owner ? `owner ${owner}` : '',
  ];
  return `${parts.filter(Boolean).join(', ')}.`;
}
