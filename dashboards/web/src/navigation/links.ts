// Addresses with other filters than those of now, such as "this page, of that version". Pure.

import { withValues, writeFilters, type Dimension, type Filters } from './filters';

export function addressOf(
  page: string,
  filters: Filters,
  parameters: Record<string, string> | URLSearchParams = {},
): string {
  const query = writeFilters(filters, new URLSearchParams(parameters)).toString();
  return query ? `${page}?${query}` : page;
}

/** The same with one dimension chosen. */
export function only(filters: Filters, dimension: Dimension, value: string): Filters {
  return withValues(filters, dimension, [value]);
}

/** The filters that compare one version of an app with another. */
export function comparing(filters: Filters, pair: { app?: string; latest: string; previous: string }): Filters {
  const chosen = { ...filters.chosen, app_version: [pair.latest] };
  if (pair.app) chosen.app_id = [pair.app];
  return { ...filters, chosen, baseVersion: pair.previous };
}
