// Questions about single spans and whole traces.

import { api, ask, type Schemas } from '../api/client';
import type { Filters } from '../navigation/filters';
import { bounds } from '../navigation/time_range';

export type StoredSpan = Schemas['StoredSpan'];
export type SpanList = Schemas['SpanList'];

export interface Search {
  where?: Record<string, string[]>;
  /** A part of the name, in any case. */
  find?: string;
  atLeastUs?: number;
  order: '-start' | '-duration_us';
  limit: number;
}

export function askSpans(filters: Filters, search: Search, signal: AbortSignal): Promise<SpanList> {
  const { from, to } = bounds(filters.range, new Date());
  const query = {
    ...filters.chosen,
    ...search.where,
    from: from.toISOString(),
    to: to.toISOString(),
    order: search.order,
    limit: search.limit,
    'contains.name': search.find || undefined,
    at_least_us: search.atLeastUs || undefined,
  };
  const path = { project: filters.project };
  return ask(api.GET('/api/v1/projects/{project}/traces', { params: { path, query: query as never }, signal }));
}

export function askTrace(project: string, trace: string, signal: AbortSignal): Promise<SpanList> {
  const path = { project, trace };
  return ask(api.GET('/api/v1/projects/{project}/traces/{trace}', { params: { path }, signal }));
}

/** The trace as Perfetto and chrome://tracing open it. */
export function askChromeFile(project: string, trace: string): Promise<string> {
  const path = { project, trace };
  return ask<unknown>(
    api.GET('/api/v1/projects/{project}/traces/{trace}/chrome', { params: { path }, parseAs: 'text' }),
  ) as Promise<string>;
}
