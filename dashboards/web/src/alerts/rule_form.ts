// A rule while it is edited: texts as typed, in the units that people think in. Pure.

import type { Schemas } from '../api/client';

export type Rule = Schemas['AlertRuleDocument'];
export type Kind = Rule['condition']['kind'];

export interface FilterRow {
  name: string;
  contains: boolean;
  values: string[];
}

export interface RuleForm {
  name: string;
  severity: NonNullable<Rule['severity']>;
  owner: string;
  enabled: boolean;
  signal: string;
  measure: string;
  /** One or two dimensions; empty: none. */
  by: [string, string];
  filters: FilterRow[];
  windowMinutes: string;
  kind: Kind;
  direction: 'above' | 'below';
  bound: string;
  recover: string;
  compare: 'same_days' | 'same_age';
  worse: '' | 'up' | 'down';
  /** In percent. */
  relative: string;
  absolute: string;
  significance: string;
  /** In percent of the least change. */
  recoverPart: string;
  forMinutes: string;
  keepMinutes: string;
  leastSamples: string;
  muteWindows: Schemas['MuteWindow'][];
  /** To how many percent the share of what is watched is raised while it fires; empty: not at all. */
  raise: string;
  eventsPerDay: string;
  /** What this page knows nothing of stays as it is. */
  rest: Record<string, unknown>;
}

/** Signals whose share devices can be told to raise. */
export const RAISABLE = ['spans', 'frame_windows', 'janks', 'page_loads', 'metrics', 'recompositions'];

export interface Shown {
  /** What stands behind the field. */
  label: string;
  /** How much of the API's unit one of it is. */
  factor: number;
}

/** The unit in which people type a number of a unit of the API. */
export function shownUnit(unit: string): Shown {
  switch (unit) {
    case 'us':
      return { label: 'ms', factor: 1000 };
    case 'share':
      return { label: '%', factor: 0.01 };
    case 'bytes':
      return { label: 'kB', factor: 1000 };
    case 'ms':
      return { label: 'ms', factor: 1 };
    case 'per_second':
      return { label: 'per second', factor: 1 };
    case 'per_minute':
      return { label: 'per minute', factor: 1 };
    default:
      return { label: '', factor: 1 };
  }
}

const OWN = [
  ...['name', 'severity', 'owner', 'enabled', 'metric', 'window_minutes', 'condition'],
  ...['for_minutes', 'keep_minutes', 'least_samples', 'mute_windows'],
];

/** The unit is that of the measure, as the API says it. */
export function toForm(rule: Rule, unit: string): RuleForm {
  const { factor } = shownUnit(unit);
  const { metric, condition } = rule;
  const threshold = condition.kind === 'threshold' ? condition : undefined;
  const effect = ('effect' in condition ? condition.effect : undefined) ?? {};
  const typed = (value: number | null | undefined, of = factor) =>
    value === null || value === undefined ? '' : String(tidy(value / of));
  return {
    name: rule.name,
    severity: rule.severity ?? 'warning',
    owner: rule.owner ?? '',
    enabled: rule.enabled ?? true,
    signal: metric.signal,
    measure: metric.measure,
    by: [metric.by?.[0] ?? '', metric.by?.[1] ?? ''],
    filters: Object.entries(metric.filters ?? {}).map(([name, values]) => ({
      name: name.replace(/^contains\./, ''),
      contains: name.startsWith('contains.'),
      values,
    })),
    windowMinutes: String(rule.window_minutes ?? 60),
    kind: condition.kind,
    direction: typeof threshold?.below === 'number' ? 'below' : 'above',
    bound: typed(threshold?.above ?? threshold?.below),
    recover: typed(threshold?.recover),
    compare: (condition.kind === 'regression' && condition.compare) || 'same_days',
    worse: effect.worse ?? '',
    relative: typed(effect.least_relative ?? 0.2, 0.01),
    absolute: typed(effect.least_absolute ?? 0),
    significance: String(effect.significance ?? 0.001),
    recoverPart: typed(effect.recover ?? 0.5, 0.01),
    forMinutes: String(rule.for_minutes ?? 5),
    keepMinutes: String(rule.keep_minutes ?? 120),
    leastSamples: String(rule.least_samples ?? 100),
    muteWindows: rule.mute_windows ?? [],
    raise: typed(shares(rule.action)[metric.signal], 0.01),
    eventsPerDay: String(rule.action?.events_per_day ?? 500_000),
    rest: Object.fromEntries(Object.entries(rule).filter(([name]) => !OWN.includes(name))),
  };
}

export function toDocument(form: RuleForm, unit: string): Rule {
  const filters = Object.fromEntries(
    form.filters
      .filter((row) => row.name !== '' && row.values.length > 0)
      .map((row) => [(row.contains ? 'contains.' : '') + row.name, row.values]),
  );
  const by = form.by.filter(Boolean);
  const { action: kept, ...rest } = form.rest;
  const action = raised(form, kept as Action | undefined);
  return {
    ...rest,
    ...(action && { action }),
    name: form.name,
    severity: form.severity,
    owner: form.owner,
    enabled: form.enabled,
    metric: {
      signal: form.signal,
      measure: form.measure,
      ...(by.length > 0 && { by }),
      ...(Object.keys(filters).length > 0 && { filters }),
    },
    window_minutes: number(form.windowMinutes),
    condition: condition(form, shownUnit(unit).factor),
    for_minutes: number(form.forMinutes),
    keep_minutes: number(form.keepMinutes),
    least_samples: number(form.leastSamples),
    ...(form.muteWindows.length > 0 && { mute_windows: form.muteWindows }),
  };
}

type Action = NonNullable<Rule['action']>;

const shares = (action: Rule['action']): Record<string, number | null | undefined> => ({ ...action?.sampling });

/** The action with the share of what is watched as it was typed; none when nothing is left to do. */
function raised(form: RuleForm, kept: Action | undefined): Action | undefined {
  const { [form.signal]: _, ...others } = shares(kept);
  const typed = form.raise.trim() !== '' && RAISABLE.includes(form.signal);
  const sampling = typed ? { ...others, [form.signal]: number(form.raise, 0.01) } : others;
  if (!kept?.tracing && Object.keys(sampling).length === 0) return undefined;
  return { ...kept, sampling, events_per_day: number(form.eventsPerDay) };
}

function condition(form: RuleForm, factor: number): Rule['condition'] {
  const effect = {
    ...(form.worse && { worse: form.worse }),
    least_relative: number(form.relative, 0.01),
    least_absolute: number(form.absolute, factor),
    significance: number(form.significance),
    recover: number(form.recoverPart, 0.01),
  };
  switch (form.kind) {
    case 'threshold': {
      const recover = form.recover.trim() === '' ? {} : { recover: number(form.recover, factor) };
      return { kind: 'threshold', [form.direction]: number(form.bound, factor), ...recover };
    }
    case 'regression':
      return { kind: 'regression', compare: form.compare, effect };
    case 'last_week':
      return { kind: 'last_week', effect };
    case 'absence':
      return { kind: 'absence' };
  }
}

/** What is no number is none in JSON either, and the server says so at its field. */
function number(text: string, factor = 1): number {
  return text.trim() === '' ? NaN : tidy(Number(text) * factor);
}

/** Without what the binary system adds: 0.1 % is 0.001. */
function tidy(value: number): number {
  return Number(value.toPrecision(12));
}

/** A rule to begin with that no template is like. */
export const BLANK: Rule = {
  name: '',
  metric: { signal: 'spans', measure: 'p95_us', by: ['name'] },
  window_minutes: 60,
  condition: { kind: 'threshold', above: 500_000 },
};

/** What a rule asks, in a line. */
export function inWords({ metric, condition, window_minutes: minutes = 60 }: Rule, measure: string): string {
  const of = metric.by?.length ? ` by ${metric.by.join(' and ')}` : '';
  const what = `${metric.signal.replaceAll('_', ' ')}, ${measure}${of}`;
  switch (condition.kind) {
    case 'threshold':
      return `${what}: beyond a bound, over ${span(minutes)}`;
    case 'regression':
      return `${what}: worse than the version before, over ${span(minutes)}`;
    case 'last_week':
      return `${what}: worse than last week, over ${span(minutes)}`;
    case 'absence':
      return `${metric.signal.replaceAll('_', ' ')}${of}: nothing for ${span(minutes)}`;
  }
}

export function span(minutes: number): string {
  if (minutes % 1440 === 0) return minutes === 1440 ? '1 day' : `${minutes / 1440} days`;
  if (minutes % 60 === 0) return minutes === 60 ? '1 hour' : `${minutes / 60} hours`;
  return minutes > 180 ? `${Math.round(minutes / 60)} hours` : `${minutes} minutes`;
}
