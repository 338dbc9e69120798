// A jank group as Markdown: the numbers of both compared versions, and the costliest stack.

import { valueOf } from '../api/query';
import { fixedAddress, seenFacts, seenFilters } from '../evidence/fixed_time';
import { markdown, type Evidence } from '../evidence/markdown';
import { measureRows } from '../evidence/measures';
import { topStack } from '../evidence/top_stack';
import { format } from '../format/units';
import type { Filters } from '../navigation/filters';
import { changeOf, changeText, type Evidence as Significance } from '../versions/change';
import { ENOUGH } from '../versions/minimum_samples';
import type { Group, Groups, Names } from './groups';
import type { Where } from './queries';
import { perHour, type HoursOfUse } from './rates';

export interface GroupFacts {
  group: Group;
  /** Whether the base version has no stored jank of the group. */
  isNew: boolean;
  /** Judges the change of the rate. */
  judged?: Significance;
  answer: Groups['answer'];
  names: Names | undefined;
  use: HoursOfUse | undefined;
  filters: Filters;
  /** The parameters of the URL beside the filters. */
  parameters: Record<string, string>;
}

export async function groupAsMarkdown(facts: GroupFacts, where: Where): Promise<string> {
  const { signal } = new AbortController();
  const stack = await topStack(facts.filters, where, 'Costliest stack', signal).catch(() => undefined);
  return markdown({ ...groupEvidence(facts), stack }, window.location.origin);
}

/** Exported for its test. */
export function groupEvidence({ group, isNew, judged, answer, names, use, filters, parameters }: GroupFacts): Evidence {
  const seen = seenFilters(filters, answer);
  const labels = { now: filters.chosen.app_version?.join(', ') ?? 'Now', base: filters.baseVersion };
  const table = measureRows(answer, group.row, labels);
  const installs = Math.min(
    valueOf(answer, group.row, 'installs') ?? 0,
    valueOf(answer, group.row, 'installs', 'base') ?? 0,
  );
  const isEnough = installs >= ENOUGH.janks;
  // A version with more use has more janks, so only rates with enough installs are compared.
  if (table.head.length > 2) table.rows = table.rows.map(([name = '', now = '', base = '']) => [name, now, base, '–']);
  if (use) {
    const rate = perHour(valueOf(answer, group.row, 'count'), use.hours);
    const base = isEnough ? perHour(valueOf(answer, group.row, 'count', 'base'), use.baseHours) : null;
    const compared = [format(base, 'per_hour'), changeText(changeOf(rate, base, 'lower', 'per_hour', judged))];
    table.rows.unshift(['Per hour of use', format(rate, 'per_hour'), ...(table.head.length > 2 ? compared : [])]);
  }
  return {
    title: `Jank: ${group.title}`,
    about: isNew ? [`Not in ${filters.baseVersion}.`] : [],
    facts: [
      ['Category', names?.category],
      ['Culprit', names?.culprit],
      ['Owner', group.owner],
      ...seenFacts(filters, answer),
    ],
    table,
    links: [{ label: 'Jank group', path: fixedAddress(`/jank/${group.id}`, seen, parameters) }],
  };
}
