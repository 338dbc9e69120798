// URLs of pages with given filters. Pure.

import { isFilter, supportedBy, withValues, writeFilters, type FilterName, type Filters } from './filters';

/** Returns the URL of a page. A parameter with the name of a dimension or an attribute counts as a filter. */
export function addressOf(
  page: string,
  filters: Filters,
  parameters: Record<string, string> | URLSearchParams = {},
): string {
  const named = parameters instanceof URLSearchParams ? [] : Object.entries(parameters);
  const wanted = named.reduce((all, [name, value]) => (isFilter(name) ? only(all, name, value) : all), filters);
  const query = writeFilters(supportedBy(page, wanted), new URLSearchParams(parameters)).toString();
  return query ? `${page}?${query}` : page;
}

/** The filters with one dimension or attribute set to a single value. */
export function only(filters: Filters, name: FilterName, value: string): Filters {
  return withValues(filters, name, [value]);
}

/** The filters that compare one version of an app with another. */
export function comparing(filters: Filters, pair: { app?: string; latest: string; previous: string }): Filters {
  const chosen = { ...filters.chosen, app_version: [pair.latest] };
  if (pair.app) chosen.app_id = [pair.app];
  return { ...filters, chosen, baseVersion: pair.previous };
}

/**
 * The URL of the timeline of a session. `at` is the time of an event of the session: the time speeds up the search for the session, and
 * selects the event. `span` selects a span if several spans began at that time.
 */
export function sessionAddress(filters: Filters, sessionId: string, at?: string, span?: string): string {
  return addressOf(`/sessions/${encodeURIComponent(sessionId)}`, filters, { ...(at && { at }), ...(span && { span }) });
}

/** The parameters of the page Remote config that show the configuration of one install. */
export function ofDevice(install: string): Record<string, string> {
  return { tab: 'device', 'device.install_id': install };
}
