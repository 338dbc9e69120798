// The form of a rule: values as typed, in the units that users see. Pure.

import { tidy } from '../format/units';
import type { Schemas } from '../api/client';

export type Rule = Schemas['AlertRuleDocument'];
export type Kind = Rule['condition']['kind'];

type Condition = Rule['condition'];
type Comparison = Extract<Condition, { kind: 'regression' | 'last_week' }>;

/** Whether a condition compares two sides. Such a condition also needs significance. */
export function isComparison(condition: Condition): condition is Comparison {
  return condition.kind === 'regression' || condition.kind === 'last_week';
}

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
  /** One or two dimensions. An empty text means no dimension. */
  by: [string, string];
  filters: FilterRow[];
  windowMinutes: string;
  kind: Kind;
  direction: 'above' | 'below';
  bound: string;
  recover: string;
  compare: 'same_days' | 'same_age';
  worse: '' | 'up' | 'down';
  /** The minimum relative change, in percent. */
  relative: string;
  absolute: string;
  significance: string;
  /** The part of the minimum change below which the incident resolves, in percent. */
  recoverPart: string;
  /** The number of days in which a new group must not have occurred. */
  unseenDays: string;
  forMinutes: string;
  keepMinutes: string;
  leastSamples: string;
  muteWindows: Schemas['MuteWindow'][];
  /** The sampling rate of the watched signal while the rule fires, in percent. Empty means unchanged. */
  raise: string;
  eventsPerDay: string;
  /** Fields that the form does not edit, kept unchanged. */
  rest: Record<string, unknown>;
}

/** Signals whose sampling rate a rule can raise. */
export const RAISABLE = ['spans', 'frame_windows', 'janks', 'page_loads', 'metrics', 'recompositions'];

export interface Shown {
  /** Shown next to the label of the field. */
  label: string;
  /** The number of API units in one shown unit. */
  factor: number;
}

/** The unit in which users type a value that has this unit in the API. */
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

/** `unit` is the unit of the measure in the API. */
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
    // A regression without `compare` compares on the same days.
    compare: condition.kind === 'regression' ? (condition.compare ?? 'same_days') : 'same_age',
    worse: effect.worse ?? '',
    relative: typed(effect.least_relative ?? 0.2, 0.01),
    absolute: typed(effect.least_absolute ?? 0),
    significance: String(effect.significance ?? 0.001),
    recoverPart: typed(effect.recover ?? 0.5, 0.01),
    unseenDays: String((condition.kind === 'appearance' && condition.unseen_days) || 28),
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

/** The action with the typed sampling rate. `undefined` if the action changes nothing. */
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
    case 'appearance':
      return { kind: 'appearance', unseen_days: number(form.unseenDays) };
  }
}

/** Text that is not a number becomes `null` in JSON. The server then reports a fault of that field. */
function number(text: string, factor = 1): number {
  return text.trim() === '' ? NaN : tidy(Number(text) * factor);
}

/** The rule that the editor starts with if no template is chosen. */
export const BLANK: Rule = {
  name: '',
  metric: { signal: 'spans', measure: 'p95_us', by: ['name'] },
  window_minutes: 60,
  condition: { kind: 'threshold', above: 500_000 },
};

export function span(minutes: number): string {
  if (minutes % 1440 === 0) return minutes === 1440 ? '1 day' : `${minutes / 1440} days`;
  if (minutes % 60 === 0) return minutes === 60 ? '1 hour' : `${minutes / 60} hours`;
  return minutes > 180 ? `${Math.round(minutes / 60)} hours` : `${minutes} minutes`;
}
