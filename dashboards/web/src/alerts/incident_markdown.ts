// Formats an incident as Markdown: numbers with base and periods, significance, rule, the stack that blocked longest, assignee and comments.

import { markdown, type Evidence as AsMarkdown } from '../evidence/markdown';
import { topStack } from '../evidence/top_stack';
import { dateTime, format, fromMicros, probability } from '../format/units';
import { zoneText } from '../format/zone.svelte';
import { lasting, mayBeJank, type Incident } from './incident';
import { period, ruleOf, sideLabels, signed, testedOn } from './evidence_text';
import { janksBeside, likelyCause, perHourText } from './janks_beside';
import { isComparison } from './rule_form';

export async function incidentAsMarkdown(incident: Incident, project: string): Promise<string> {
  const stack = await stackOf(incident, project).catch(() => undefined);
  return markdown({ ...incidentEvidence(incident, project), stack }, window.location.origin);
}

async function stackOf({ evidence }: Incident, project: string): Promise<AsMarkdown['stack']> {
  if (!mayBeJank(evidence.metric.signal)) return undefined;
  const { signal } = new AbortController();
  const { rates, filters, where, pages } = await janksBeside(evidence, project, signal);
  const cause = likelyCause(rates);
  const top = cause ?? rates[0];
  if (!top) return undefined;
  const rate = top.now === null ? '' : `, ${format(top.now, 'per_hour')} ${perHourText(pages)}`;
  const label = cause ? 'Likely cause' : 'Top stack that blocked the main thread';
  const title = `${label}: ${top.group.title}${rate}`;
  return topStack(filters, { ...where, group_id: top.group.id }, title, signal);
}

/** Exported for its test. */
export function incidentEvidence(incident: Incident, project: string): AsMarkdown {
  const { evidence } = incident;
  const { numbers, sides, unit } = evidence;
  const labels = sideLabels(evidence);
  const compared = isComparison(evidence.condition);
  const samples = (count: number | null | undefined) => `${format(count, 'count')} samples`;
  const betweenLike =
    typeof numbers.standardised === 'number' ? `, ${signed(numbers.standardised)} between like devices` : '';
  const at = (micros: number) => dateTime(fromMicros(micros));
  const hasBase = typeof sides.base_from === 'number' && typeof sides.base_to === 'number';
  return {
    title: incident.title,
    about: [incident.summary, ruleOf(evidence)],
    facts: [
      ['Severity', incident.severity],
      ['State', stateOf(incident, at)],
      ['Acknowledged', incident.acknowledged_at ? at(incident.acknowledged_at) : null],
      ['Assigned to', incident.assignee?.name],
      ['Owner', incident.owner],
      [labels.now, `${format(numbers.value, unit)} (${samples(numbers.samples)})`],
      ['Period', period(sides.from, sides.to)],
      [labels.base, compared ? `${format(numbers.base, unit)} (${samples(numbers.base_samples)})` : null],
      ['Time zone', zoneText(fromMicros(sides.to))],
      ['Compared with', hasBase ? period(sides.base_from!, sides.base_to!) : null],
      ['Change', compared ? signed(numbers.relative) + betweenLike : null],
      [
        'Significance (p)',
        typeof numbers.p_corrected === 'number' ? `${probability(numbers.p_corrected)}, ${testedOn(evidence)}` : null,
      ],
      ['Threshold', evidence.condition.kind === 'threshold' ? format(numbers.bound, unit) : null],
    ],
    comments: incident.comments?.map((one) => ({
      about: `${one.author_name ?? one.author}, ${at(one.created_at)}`,
      text: one.text,
    })),
    links: [
      { label: 'Incident', path: `/incidents/${incident.id}?${new URLSearchParams({ project })}` },
      { label: 'Numbers of this period', path: incident.link },
      { label: 'Rule', path: `/alert-rules/${incident.rule}?${new URLSearchParams({ project })}` },
    ],
  };
}

function stateOf(incident: Incident, at: (micros: number) => string): string {
  if (incident.kind === 'mix_shift') return `recorded at ${at(incident.started_at)}: only the mix of devices changed`;
  if (incident.state === 'firing') return `firing since ${at(incident.started_at)}`;
  const reason = incident.resolved_because ? `: ${incident.resolved_because}` : '';
  return `resolved after ${lasting(incident, 0)}, began at ${at(incident.started_at)}${reason}`;
}
