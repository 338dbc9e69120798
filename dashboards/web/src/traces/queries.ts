// Queries for individual spans and whole traces.

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
  order?: '-start' | '-duration_us';
  /** Finds spans with about this duration. Replaces the order. At most 20. */
  nearUs?: number;
  limit: number;
}

/** The maximum number of spans in one response. */
const PAGE = 500;

/** Loads up to `search.limit` spans, page by page. */
export async function askSpans(filters: Filters, search: Search, signal: AbortSignal): Promise<SpanList> {
  const { from, to } = bounds(filters.range, new Date());
  const path = { project: filters.project };
  const query = {
    ...filters.chosen,
    ...search.where,
    from: from.toISOString(),
    to: to.toISOString(),
    order: search.nearUs ? undefined : search.order,
    near_us: search.nearUs ? Math.round(search.nearUs) : undefined,
    'contains.name': search.find || undefined,
    at_least_us: search.atLeastUs || undefined,
  };
  const spans: StoredSpan[] = [];
  for (let cursor: string | undefined; ;) {
    const limit = Math.min(PAGE, search.limit - spans.length);
    const params = { path, query: { ...query, limit, cursor } as never };
    const page = await ask<SpanList>(api.GET('/api/v1/projects/{project}/traces', { params, signal }));
    spans.push(...page.spans);
    cursor = page.next ?? undefined;
    if (!cursor || spans.length >= search.limit) return { ...page, spans };
  }
}

export function askTrace(project: string, trace: string, signal: AbortSignal): Promise<SpanList> {
  const path = { project, trace };
  return ask(api.GET('/api/v1/projects/{project}/traces/{trace}', { params: { path }, signal }));
}

/** The trace in the format of Perfetto and chrome://tracing. */
export function askChromeFile(project: string, trace: string): Promise<string> {
  const path = { project, trace };
  return ask<unknown>(
    api.GET('/api/v1/projects/{project}/traces/{trace}/chrome', { params: { path }, parseAs: 'text' }),
  ) as Promise<string>;
}
