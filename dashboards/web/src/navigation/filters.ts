// The filters in the URL: project, period, dimensions and base version. Pure.

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
  { name: 'mode', label: 'Mode' },
  { name: 'build', label: 'Build' },
  { name: 'channel', label: 'Channel' },
  { name: 'install_id', label: 'Install' },
  { name: 'session_id', label: 'Session' },
  { name: 'config_revision', label: 'Config revision' },
] as const;

export type Dimension = (typeof DIMENSIONS)[number]['name'];

export interface Filters {
  project: string;
  range: TimeRange;
  /** Contains only dimensions with chosen values. */
  chosen: Partial<Record<Dimension, string[]>>;
  /** The app version to compare with. Empty for no comparison. */
  baseVersion: string;
  /** Compares on the same days. By default, versions are compared at the same age. */
  sameDays?: boolean;
}

const OWN_KEYS = [
  'project',
  'range',
  'from',
  'to',
  'base_app_version',
  'compare',
  ...DIMENSIONS.map((one) => one.name),
];

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
    ...(query.get('compare') === 'same_days' ? { sameDays: true } : {}),
  };
}

/** The query of a URL with these filters. Keeps other parameters of `rest`, such as an open tab. */
export function writeFilters(filters: Filters, rest = new URLSearchParams()): URLSearchParams {
  const query = new URLSearchParams();
  if (filters.project) query.set('project', filters.project);
  writeRange(filters.range, query);
  for (const { name } of DIMENSIONS) {
    for (const value of filters.chosen[name] ?? []) query.append(name, value);
  }
  if (filters.baseVersion) query.set('base_app_version', filters.baseVersion);
  if (filters.sameDays) query.set('compare', 'same_days');
  for (const [key, value] of rest) if (!OWN_KEYS.includes(key)) query.append(key, value);
  return query;
}

/** The query parameters of the comparison. Empty without a base version. */
export function comparison({ baseVersion, sameDays }: Filters): Record<string, string> {
  if (!baseVersion) return {};
  return { base_app_version: baseVersion, compare: sameDays ? 'same_days' : 'same_age' };
}

export function isDimension(name: string): name is Dimension {
  return DIMENSIONS.some((one) => one.name === name);
}

export function withValues(filters: Filters, dimension: Dimension, values: string[]): Filters {
  const chosen = { ...filters.chosen };
  if (values.length > 0) chosen[dimension] = values;
  else delete chosen[dimension];
  return { ...filters, chosen };
}

/** The number of filters that the button *Clear* would remove. */
export function chosenCount(filters: Filters): number {
  return Object.values(filters.chosen).reduce((sum, values) => sum + values.length, 0) + (filters.baseVersion ? 1 : 0);
}
