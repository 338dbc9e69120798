// What is looked at, as it stands in the address: project, time, dimensions, the version to compare with. Pure.

import { readRange, writeRange, type TimeRange } from './time_range';

export const DIMENSIONS = [
  { name: 'app_id', label: 'App' },
  { name: 'app_version', label: 'App version' },
  { name: 'os_name', label: 'OS' },
  { name: 'os_version', label: 'OS version' },
  { name: 'device_class', label: 'Device class' },
  { name: 'device_model', label: 'Device model' },
  { name: 'network', label: 'Network' },
  { name: 'page', label: 'Page' },
  { name: 'locale', label: 'Locale' },
] as const;

export type Dimension = (typeof DIMENSIONS)[number]['name'];

export interface Filters {
  project: string;
  range: TimeRange;
  /** Only dimensions of which something was chosen. */
  chosen: Partial<Record<Dimension, string[]>>;
  /** Compare with this app version; empty: with nothing. */
  baseVersion: string;
}

const OWN_KEYS = ['project', 'range', 'from', 'to', 'base_app_version', ...DIMENSIONS.map((one) => one.name)];

export function readFilters(query: URLSearchParams): Filters {
  const chosen: Filters['chosen'] = {};
  for (const { name } of DIMENSIONS) {
    const values = [...new Set(query.getAll(name))].filter((value) => value !== '');
    if (values.length > 0) chosen[name] = values;
  }
  return {
    project: query.get('project') ?? '',
    range: readRange(query),
    chosen,
    baseVersion: query.get('base_app_version') ?? '',
  };
}

/** The query of an address with these filters; what else stands in `rest`, such as an open tab, stays. */
export function writeFilters(filters: Filters, rest = new URLSearchParams()): URLSearchParams {
  const query = new URLSearchParams();
  if (filters.project) query.set('project', filters.project);
  writeRange(filters.range, query);
  for (const { name } of DIMENSIONS) {
    for (const value of filters.chosen[name] ?? []) query.append(name, value);
  }
  if (filters.baseVersion) query.set('base_app_version', filters.baseVersion);
  for (const [key, value] of rest) if (!OWN_KEYS.includes(key)) query.append(key, value);
  return query;
}

export function withValues(filters: Filters, dimension: Dimension, values: string[]): Filters {
  const chosen = { ...filters.chosen };
  if (values.length > 0) chosen[dimension] = values;
  else delete chosen[dimension];
  return { ...filters, chosen };
}

/** How many chips there are: what "clear" would take away. */
export function chosenCount(filters: Filters): number {
  return Object.values(filters.chosen).reduce((sum, values) => sum + values.length, 0) + (filters.baseVersion ? 1 : 0);
}
