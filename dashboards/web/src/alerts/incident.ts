// Turns the evidence of an incident into queries: for its chart and for related numbers. Pure.

import type { Schemas } from '../api/client';
import { isFilter, type Filters } from '../navigation/filters';

/** The generated client types a pair as a list. */
type Numbers = Omit<Schemas['AlertNumbers'], 'installs'> & { installs?: number[] | null };
export type Evidence = Omit<Schemas['AlertEvidence'], 'numbers'> & { numbers: Numbers };
export type Incident = Omit<Schemas['Incident'], 'evidence'> & { evidence: Evidence };

const HOUR = 3_600_000_000;
const DAY = 24 * HOUR;

/** The period that the chart of an incident shows, in microseconds since the epoch. */
export function timeAround(incident: Pick<Incident, 'started_at' | 'resolved_at' | 'evidence'>, now: number) {
  const pad = Math.min(14 * DAY, Math.max(6 * HOUR, 2 * 60_000_000 * incident.evidence.window_minutes));
  const from = Math.min(incident.evidence.sides.from, incident.started_at) - pad;
  return { from, to: Math.min(now, (incident.resolved_at ?? now) + pad) };
}

/** The query of the evidence as a time series: the same filters, and one line per compared version. */
export function chartAddress({ question, sides, metric }: Evidence, around: { from: number; to: number }): string {
  const [path, text] = question.split('?');
  const query = new URLSearchParams(text);
  for (const name of ['from', 'to', 'base_from', 'base_to', 'exact', 'measure', 'base_app_version', 'compare'])
    query.delete(name);
  query.set('from', new Date(around.from / 1000).toISOString());
  query.set('to', new Date(around.to / 1000).toISOString());
  query.set('measure', metric.measure);
  if (sides.version && sides.base_version) {
    query.append('app_version', sides.base_version);
    query.set('by', 'app_version');
  }
  return `${path}/series?${query}`;
}

/** The evidence as filters of the screens, so that other queries select the same events. */
export function sameFilters(evidence: Evidence, project: string): Filters {
  const { metric, group, sides } = evidence;
  const chosen: Filters['chosen'] = {};
  for (const [name, values] of Object.entries(metric.filters ?? {})) if (isFilter(name)) chosen[name] = values;
  for (const [name, value] of Object.entries(group)) if (isFilter(name) && value) chosen[name] = [value];
  if (sides.version) chosen.app_version = [sides.version];
  return {
    project,
    range: { kind: 'absolute', from: new Date(sides.from / 1000), to: new Date(sides.to / 1000) },
    chosen,
    baseVersion: sides.base_version ?? '',
    ...(sides.base_from === sides.from ? { sameDays: true } : {}),
  };
}

/** Whether stalls of the main thread can explain the numbers of a signal. */
export function mayBeJank(signal: string): boolean {
  return [
    'spans',
    'frame_windows',
    'janks',
    'page_loads',
    'app_starts',
    'start_phases',
    'recompositions',
    'sessions',
  ].includes(signal);
}

/** How long an incident lasted, or has lasted until `now` (in microseconds). */
export function lasting(incident: Pick<Incident, 'started_at' | 'resolved_at'>, now: number): string {
  const minutes = Math.max(0, Math.round(((incident.resolved_at ?? now) - incident.started_at) / 60_000_000));
  if (minutes < 1) return 'less than a minute';
  if (minutes < 120) return `${minutes} min`;
  if (minutes < 2880) return `${Math.round(minutes / 60)} h`;
  return `${Math.round(minutes / 1440)} d`;
}

/** Sorts by severity, then newest first. Acknowledged incidents come last. */
export function worstFirst(incidents: Incident[]): Incident[] {
  const rank = (one: Incident) => ['critical', 'warning', 'info'].indexOf(one.severity);
  const handled = (one: Incident) => Number(Boolean(one.acknowledged_by));
  return incidents.toSorted((a, b) => handled(a) - handled(b) || rank(a) - rank(b) || b.started_at - a.started_at);
}

/** Whether two groups have the same values, in any order. */
export function sameGroup(a: Record<string, string>, b: Record<string, string>): boolean {
  const names = Object.keys(a);
  return names.length === Object.keys(b).length && names.every((name) => a[name] === b[name]);
}
