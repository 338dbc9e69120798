// The signals that rules can watch, with their measures, units and dimensions, as the server lists them.

import { api, ask } from '../api/client';
import { queryAttributes, queryTable, type Measure, type Signal } from '../api/query';
import { hasAttributes, type Filters } from '../navigation/filters';

export const SIGNALS: Record<string, string> = {
  spans: 'Spans',
  frame_windows: 'Frames',
  janks: 'Janks',
  page_loads: 'Page loads',
  page_requests: 'Page load requests',
  requests: 'Requests',
  traffic: 'Traffic',
  metrics: 'Metrics (memory, CPU, …)',
  app_starts: 'App starts',
  start_phases: 'App start phases',
  recompositions: 'Recompositions',
  sessions: 'Sessions',
  usage: 'Uploads',
  sdk_health: 'SDK cost',
  sdk_drops: 'Events lost on devices',
  outcomes: 'Event outcomes',
} satisfies Record<Signal, string>;

export interface Words {
  measures: Measure[];
  dimensions: string[];
}

const lastWeek = (project: string): Filters => ({
  project,
  range: { kind: 'relative', text: '7d' },
  chosen: {},
  baseVersion: '',
});

/**
 * The measures and dimensions of a signal. No route returns the dimensions, so this function reads them from the fault message for an
 * unknown dimension.
 */
export async function wordsOf(project: string, signal: string, stop: AbortSignal): Promise<Words> {
  const hour: Filters = { project, range: { kind: 'relative', text: '1h' }, chosen: {}, baseVersion: '' };
  const rule = {
    name: 'Which dimensions?',
    metric: { signal, measure: 'count', by: ['?'] },
    condition: { kind: 'threshold', above: 0 },
  };
  const params = { path: { project } };
  const [table, check] = await Promise.all([
    queryTable(hour, { signal: signal as Signal, limit: 1 }, stop),
    ask(api.POST('/api/v1/projects/{project}/alert-rules/check', { params, body: rule, signal: stop })),
  ]);
  return { measures: table.measures, dimensions: dimensionsIn(check.faults.map((one) => one.message)) };
}

/** The attributes of spans or metrics in the last week as dimensions, such as `attribute.payment`. */
export async function attributesOf(project: string, signal: string, stop: AbortSignal): Promise<string[]> {
  if (!hasAttributes(signal)) return [];
  const names = await queryAttributes(lastWeek(project), { signal: signal as Signal }, stop);
  return names.map((name) => `attribute.${name}`);
}

/** `spans have no dimension …: they have name, kind, …`. Exported for its test. */
export function dimensionsIn(messages: string[]): string[] {
  const found = messages.map((text) => /they have ([\w, ]+)$/.exec(text)?.[1]).find(Boolean);
  return found?.split(', ') ?? [];
}

/** The values of a dimension in the last week, the most frequent first. */
export async function valuesOf(
  project: string,
  signal: string,
  dimension: string,
  stop?: AbortSignal,
): Promise<string[]> {
  const question = { signal: signal as Signal, by: [dimension], measures: ['count'], order: '-count', limit: 200 };
  const { rows } = await queryTable(lastWeek(project), question, stop);
  return rows.map((row) => row.keys[0] ?? '').filter(Boolean);
}
