// The filters in the URL: project, period, dimensions, attributes and base version. Pure.

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

/** A filter by an attribute that the app gives to spans and metrics. */
export type AttributeFilter = `attribute.${string}`;
export type FilterName = Dimension | AttributeFilter;

export interface Filters {
  project: string;
  range: TimeRange;
  /** Contains only dimensions with chosen values. */
  chosen: Partial<Record<FilterName, string[]>>;
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
  for (const name of filterNames(query.keys())) {
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
  for (const name of filterNames(Object.keys(filters.chosen))) {
    for (const value of filters.chosen[name] ?? []) query.append(name, value);
  }
  if (filters.baseVersion) query.set('base_app_version', filters.baseVersion);
  if (filters.sameDays) query.set('compare', 'same_days');
  for (const [key, value] of rest) if (!OWN_KEYS.includes(key) && !isAttribute(key)) query.append(key, value);
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

/** Whether a name is `attribute.` and the name of an attribute that the server can query. */
export function isAttribute(name: string): name is AttributeFilter {
  return /^attribute\.[\w.-]{1,64}$/.test(name);
}

export function isFilter(name: string): name is FilterName {
  return isDimension(name) || isAttribute(name);
}

/** All dimensions, then the attributes among these names. */
function filterNames(names: Iterable<string>): FilterName[] {
  return [...DIMENSIONS.map(({ name }) => name), ...new Set([...names].filter(isAttribute))];
}

export function filterLabel(name: FilterName): string {
  return DIMENSIONS.find((one) => one.name === name)?.label ?? name.replace(/^attribute\./, '');
}

/** Whether the events of a signal have attributes. */
export function hasAttributes(signal: string): boolean {
  return signal === 'spans' || signal === 'metrics';
}

/** The signal whose attributes a page filters by. */
export function attributedSignal(path: string): 'spans' | 'metrics' | undefined {
  if (path === '/resources') return 'metrics';
  return /^\/(spans|traces)(\/|$)/.test(path) ? 'spans' : undefined;
}

export function withoutAttributes(filters: Filters): Filters {
  const kept = Object.entries(filters.chosen).filter(([name]) => !isAttribute(name));
  return { ...filters, chosen: Object.fromEntries(kept) };
}

/** The filters that a page supports. */
export function supportedBy(path: string, filters: Filters): Filters {
  return attributedSignal(path) ? filters : withoutAttributes(filters);
}

export function withValues(filters: Filters, name: FilterName, values: string[]): Filters {
  const chosen = { ...filters.chosen };
  if (values.length > 0) chosen[name] = values;
  else delete chosen[name];
  return { ...filters, chosen };
}

/** The number of filters that the button *Clear* would remove. */
export function chosenCount(filters: Filters): number {
  return Object.values(filters.chosen).flat().length + (filters.baseVersion ? 1 : 0);
}
