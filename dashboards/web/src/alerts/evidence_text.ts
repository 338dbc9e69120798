// Formats the numbers of an incident as text, for its page and for Markdown. Pure.

import { measureName } from '../format/measure_names';
import { dateTime, fromMicros } from '../format/units';
import { signed as signedChange } from '../versions/change';
import type { Evidence, Incident } from './incident';
import { dimension, filterText } from './filter_text';
import { noun, sentence, type About } from './sentence';

/** A change with its sign, or a dash if it is unknown. */
export function signed(part: number | null | undefined): string {
  return part === null || part === undefined ? '–' : signedChange(part);
}

/** `tested on 80 and 90 installs, corrected for comparing 12 groups`. */
export function testedOn({ numbers }: Evidence): string {
  const installs = numbers.installs ? `tested on ${numbers.installs[0]} and ${numbers.installs[1]} installs, ` : '';
  const groups = numbers.groups ?? 1;
  return `${installs}corrected for comparing ${groups} ${groups === 1 ? 'group' : 'groups'}`;
}

/** The labels of the two sides, such as `p95 in 4.12.0`. */
export function sideLabels(evidence: Evidence): { now: string; base: string } {
  const { metric, sides, condition } = evidence;
  const measure = condition.kind === 'absence' ? 'Arrived' : measureName(metric.measure);
  const of = (version: string | null | undefined, or: string) => (version ? `${measure} in ${version}` : or);
  return { now: of(sides.version, measure), base: of(sides.base_version, 'The same time last week') };
}

/** `metrics, p75, only where name is memory used and page is Cart`. */
export function watched(evidence: Evidence): string {
  const only = selected(evidence).map(filterText);
  const where = only.length > 0 ? [`only where ${only.join(' and ')}`] : [];
  return [noun(evidence.metric.signal), measureName(evidence.metric.measure), ...where].join(', ');
}

/** The filters of an incident that the linked screen does not support. */
export function leftOut({ link, evidence }: Pick<Incident, 'link' | 'evidence'>): string[] {
  const [path = '', query] = link.split('?');
  const carried = new Set([...path.split('/').map(decodeURIComponent), ...new URLSearchParams(query).values()]);
  const missing = selected(evidence).filter(([, values]) => values.some((value) => !carried.has(value)));
  return missing.map(([name]) => dimension(name.replace('contains.', '')));
}

/** The values that select the events of an incident. Leaves out `title`, because `title` names the same jank group as `group_id`. */
function selected({ metric, group }: Evidence): [string, string[]][] {
  const all: Record<string, string[]> = { ...metric.filters };
  for (const [name, value] of Object.entries(group)) all[name] = [value];
  if ('group_id' in all) delete all.title;
  return Object.entries(all);
}

export function period(from: number, to: number): string {
  return `${dateTime(fromMicros(from))} to ${dateTime(fromMicros(to))}`;
}

/** The rule of an incident as a sentence, with its group and its versions filled in. */
export function ruleOf(evidence: Evidence): string {
  const { sides, unit, group } = evidence;
  const about: About = { unit, group };
  if (sides.version && sides.base_version) about.versions = { newer: sides.version, older: sides.base_version };
  return sentence(evidence, about);
}
