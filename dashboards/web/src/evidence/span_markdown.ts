// A span as Markdown, with the numbers of both compared versions. Pure.

import type { TableAnswer } from '../api/query';
import type { Filters } from '../navigation/filters';
import { fixedAddress, seenFacts } from './fixed_time';
import { markdown } from './markdown';
import { measureRows } from './measures';

export function spanAsMarkdown(name: string, answer: TableAnswer, filters: Filters, origin: string): string {
  const row = answer.rows[0] ?? { keys: [], values: [] };
  const labels = { now: filters.chosen.app_version?.join(', ') ?? 'Now', base: filters.baseVersion };
  return markdown(
    {
      title: `Span ${name}`,
      facts: seenFacts(filters),
      table: measureRows(answer, row, labels),
      links: [
        { label: 'Span', path: fixedAddress('/spans', filters, { name }) },
        { label: 'Traces', path: fixedAddress('/traces', filters, { name }) },
      ],
    },
    origin,
  );
}
