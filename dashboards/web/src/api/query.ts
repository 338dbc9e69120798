// Queries of device data: tables, time series and distributions. Each query includes the filters in the URL.

import { bounds } from '../navigation/time_range';
import { comparison, hasAttributes, withoutAttributes, type Filters } from '../navigation/filters';
import type { Schemas } from './client';
import { Problem, isAborted } from './problem';
import { fetchWithSession } from './session_refresh';

export type Signal =
  | 'spans'
  | 'frame_windows'
  | 'janks'
  | 'page_loads'
  | 'page_requests'
  | 'requests'
  | 'traffic'
  | 'metrics'
  | 'app_starts'
  | 'start_phases'
  | 'recompositions'
  | 'sessions'
  | 'usage'
  | 'sdk_health'
  | 'sdk_drops'
  | 'outcomes';

export type Measure = Schemas['MeasureBody'];
export type TableRow = Schemas['Row'];
export type TableAnswer = Schemas['QueryTable'];
export type SeriesAnswer = Schemas['QuerySeries'];
export type DistributionAnswer = Schemas['QueryDistribution'];
export type SignificanceAnswer = Schemas['QuerySignificance'];

export interface Question {
  signal: Signal;
  by?: string[];
  measures?: string[];
  /** The measure to sort by. `-p95_us` sorts descending, `-change.p95_us` by the relative change against the base. */
  order?: string;
  limit?: number;
  /** Filters by dimensions of the signal, in addition to the filters in the URL. */
  where?: Record<string, string | string[]>;
  /** The minimum number of samples of a group, on both sides of a comparison. */
  atLeastSamples?: number;
  /** For each dimension, a text that its values must contain, ignoring case. */
  contains?: Record<string, string>;
  /** Whether to compare with the base version of the filters. `true` by default. */
  compare?: boolean;
}

export function queryTable(filters: Filters, question: Question, signal?: AbortSignal): Promise<TableAnswer> {
  return get(address(filters, question), signal);
}

export function querySeries(filters: Filters, question: Question, signal?: AbortSignal): Promise<SeriesAnswer> {
  return get(address(filters, { ...question, compare: false }, '/series'), signal);
}

/** The significance of the changes in a compared table. */
export function querySignificance(
  filters: Filters,
  question: Question,
  signal?: AbortSignal,
): Promise<SignificanceAnswer> {
  return get(address(filters, question, '/significance'), signal);
}

export function queryDistribution(
  filters: Filters,
  question: Question & { field: string },
  signal?: AbortSignal,
): Promise<DistributionAnswer> {
  return get(address(filters, { ...question, compare: false }, '/distribution', { field: question.field }), signal);
}

/**
 * The names of the attributes of events, the most frequent first. Those of OpenTelemetry itself come last. Leaves out `since_last_ms`, because
 * the dimension `since_last` has its values in steps.
 */
export async function queryAttributes(filters: Filters, question: Question, signal?: AbortSignal): Promise<string[]> {
  const path = address(filters, { ...question, compare: false }, '/attributes');
  const { attributes } = await get<Schemas['EventAttributes']>(path, signal);
  const names = attributes.map(({ name }) => name).filter((name) => name !== 'since_last_ms');
  const isLast = (name: string) => Number(name.startsWith('otel.'));
  return names.toSorted((a, b) => isLast(a) - isLast(b));
}

/** Returns the value of a measure in a row, or `null` if the row has no such value. */
export function valueOf(answer: TableAnswer, row: TableRow, measure: string, of: 'values' | 'base' = 'values') {
  const place = answer.measures.findIndex((one) => one.name === measure);
  return row[of]?.[place] ?? null;
}

/** Exported for its test. */
export function address(
  filters: Filters,
  question: Question,
  kind = '',
  more: Record<string, string> = {},
  now = new Date(),
): string {
  const { from, to } = bounds(filters.range, now);
  const query = new URLSearchParams({ from: from.toISOString(), to: to.toISOString() });
  // The server rejects attributes of signals that have none.
  const { chosen } = hasAttributes(question.signal) ? filters : withoutAttributes(filters);
  for (const [name, values] of Object.entries({ ...chosen, ...question.where })) {
    for (const value of [values].flat()) query.append(name, value);
  }
  for (const by of question.by ?? []) query.append('by', by);
  for (const measure of question.measures ?? []) query.append('measure', measure);
  if (question.order) query.set('order', question.order);
  if (question.limit) query.set('limit', String(question.limit));
  if (question.atLeastSamples) query.set('at_least_samples', String(question.atLeastSamples));
  for (const [name, text] of Object.entries(question.contains ?? {})) if (text) query.append(`contains.${name}`, text);
  if (question.compare !== false)
    for (const [name, value] of Object.entries(comparison(filters))) query.set(name, value);
  for (const [name, value] of Object.entries(more)) query.set(name, value);
  return `/api/v1/projects/${encodeURIComponent(filters.project)}/query/${question.signal}${kind}?${query}`;
}

/** Fetches JSON from the API. All queries of device data use this function. */
export async function get<T>(path: string, signal?: AbortSignal): Promise<T> {
  let response: Response;
  try {
    const url = new URL(path, window.location.origin);
    response = await fetchWithSession(new Request(url, { signal }));
  } catch (error) {
    if (isAborted(error)) throw error;
    throw Problem.from(error);
  }
  const body: unknown = await response.json().catch(() => null);
  if (!response.ok) throw Problem.of(response.status, body);
  return body as T;
}
