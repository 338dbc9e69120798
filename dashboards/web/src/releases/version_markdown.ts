// The findings about a version as Markdown: the changes from its base, with links to fixed times. Pure.

import { fixedAddress, seenFacts } from '../evidence/fixed_time';
import { markdown, type Evidence } from '../evidence/markdown';
import { shareOfInstalls } from '../format/affected';
import { dateTime, format } from '../format/units';
import type { Filters } from '../navigation/filters';
import { comparing } from '../navigation/links';
import type { Ranked, Regression } from '../overview/worst_first';
import { signed } from '../versions/change';
import type { Release } from '../versions/releases.svelte';
import type { VersionPair } from '../versions/version_order';

export interface VersionFindings {
  pair: VersionPair;
  release: Release | undefined;
  /** Missing if there is no base. */
  changes: Ranked | undefined;
  /** The titles of firing incidents. */
  incidents: string[];
  /** The builds whose symbols are missing or wrong. `undefined` if unknown. */
  missing: number | undefined;
  filters: Filters;
}

/** The most changes of each direction. */
const SHOWN = 20;

export function versionAsMarkdown(findings: VersionFindings, origin: string): string {
  return markdown(versionEvidence(findings), origin);
}

/** Exported for its test. */
export function versionEvidence({ pair, release, changes, incidents, missing, filters }: VersionFindings): Evidence {
  const { latest, previous, app } = pair;
  const asked = previous ? comparing(filters, pair) : filters;
  const at = (seconds: number | null | undefined) => (seconds == null ? null : dateTime(seconds * 1000));
  const worse = changes?.worse ?? [];
  const better = changes?.better ?? [];
  return {
    title: `Version ${latest}`,
    about: [
      previous
        ? `Compared with ${previous}: ${worse.length} significantly worse, ${better.length} significantly better.`
        : 'There is no earlier version to compare with.',
    ],
    facts: [
      ['App', app],
      ['First seen', at(release?.firstSeen)],
      ['Reached users', at(release?.reached)],
      ['Last seen', at(release?.lastSeen)],
      ...seenFacts(asked),
      ['Open incidents', incidents.join('; ') || 'none'],
      ['Builds without symbols', missing === undefined ? null : format(missing)],
    ],
    table: {
      head: ['Change', 'Kind', 'Name', latest, previous || 'Base', 'Installs'],
      rows: [
        ...worse.slice(0, SHOWN).map((row) => changeRow('worse', row)),
        ...better.slice(0, SHOWN).map((row) => changeRow('better', row)),
      ],
    },
    links: [
      { label: `Version ${latest}`, path: fixedAddress(`/versions/${encodeURIComponent(latest)}`, asked) },
      ...worse.slice(0, 5).map((row) => ({ label: `${row.kind} ${row.name}`, path: fixedLink(row, asked) })),
    ],
  };
}

function changeRow(word: string, row: Regression): string[] {
  const change = row.isNew ? 'new' : `${Number.isFinite(row.change) ? signed(row.change) : 'from 0'}, ${word}`;
  const base = row.isNew ? '–' : format(row.base, row.unit);
  return [
    change,
    row.kind,
    row.name,
    `${format(row.value, row.unit)} (${row.measure})`,
    base,
    `${format(row.installs)} ${shareInBrackets(row)}`.trim(),
  ];
}

function shareInBrackets({ installs, active }: Regression): string {
  const share = shareOfInstalls(installs, active);
  return share && `(${share})`;
}

/** The page of a change, with a fixed time. */
function fixedLink(row: Regression, filters: Filters): string {
  const [page = '/', query] = row.href.split('?');
  const fixed = new URLSearchParams(fixedAddress('', filters).slice(1));
  const own = new URLSearchParams(query);
  own.delete('range');
  for (const name of ['from', 'to']) own.set(name, fixed.get(name) ?? '');
  return `${page}?${own}`;
}
