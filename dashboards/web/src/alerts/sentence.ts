// Writes a rule as a sentence, for the editor, for lists and for incidents. Pure.

import type { Schemas } from '../api/client';
import { measureName } from '../format/measure_names';
import { metricLabel } from '../format/measures';
import { format, grouped } from '../format/units';
import { offsetText } from '../format/zone.svelte';
import { dimension, filterText } from './filter_text';
import { isComparison, span, type Rule } from './rule_form';

/** The parts of a rule that an incident also has. */
export type RuleParts = Pick<Rule, 'metric' | 'condition'> & Partial<Rule>;

/** Context that the rule itself does not contain. */
export interface About {
  /** The unit of the measure in the API. By default, derived from the name of the measure. */
  unit?: string;
  /** Which values are good. By default, derived from the name of the measure. */
  better?: Schemas['MeasureBody']['better'];
  /** The group of an incident. */
  group?: Record<string, string>;
  /** The versions of an incident. */
  versions?: { newer: string; older: string };
}

const NOUNS: Record<string, string> = {
  spans: 'spans',
  frame_windows: 'frames',
  janks: 'janks',
  page_loads: 'page loads',
  page_requests: 'page load requests',
  requests: 'requests',
  traffic: 'traffic',
  metrics: 'metrics',
  app_starts: 'app starts',
  start_phases: 'app start phases',
  recompositions: 'recompositions',
  usage: 'uploads',
  sdk_health: 'the SDK',
  sdk_drops: 'events lost on devices',
  outcomes: 'received events',
};

/** Measures whose display name does not fit into a sentence. */
const MEASURES: Record<string, string> = {
  slow_share: 'the share of slow frames',
  slow_start_share: 'the share of slow starts',
  frozen_share: 'the share of frozen frames',
  dropped_share: 'the share of dropped frames',
  jank_share: 'the share of time in jank',
  anr_share: 'the share of sessions with an ANR',
  anr_sessions: 'the number of sessions with an ANR',
  delay_ms_per_minute: 'the delay per minute of frames',
  fps: 'the number of frames per second',
  main_thread_share: 'the share of time on the main thread',
  bytes_per_install: 'the traffic per install',
  overhead_us_per_install: 'the time that the SDK uses per install',
};

/** `Memory used` → `memory used`, but `CPU` stays. */
const lowerFirst = (text: string) => (/^[A-Z]{2}/.test(text) ? text : text.charAt(0).toLowerCase() + text.slice(1));
export const noun = (signal: string) => NOUNS[signal] ?? signal.replaceAll('_', ' ');
/** `Alert when, for any name, the p75 of spans in the latest version is at least 5 % slower than in the previous version, …`. */
export function sentence(rule: RuleParts, about: About = {}): string {
  const any = about.group ? [] : dimensions(rule);
  const isAbout = rule.condition.kind !== 'absence' && rule.condition.kind !== 'appearance';
  const start = isAbout && any.length > 0 ? `Alert when, for any ${any.join(' and ')}, ` : 'Alert when ';
  return `${start}${[happens(rule, about), ...limits(rule)].join(', ')}.`;
}

/** When an incident resolves, when the rule is muted, and what its action changes: one sentence each. */
export function afterwards(rule: RuleParts, about: About = {}): string[] {
  return [...resolves(rule, about), ...(rule.mute_windows ?? []).map(muted), ...raises(rule)];
}

/** The dimensions of a rule as words. Leaves out `title`, because `title` names the same jank group as `group_id`. */
function dimensions({ metric: { by = [] } }: RuleParts): string[] {
  const isNamed = by.includes('group_id');
  return by.filter((name) => !(isNamed && name === 'title')).map(dimension);
}

function happens(rule: RuleParts, about: About): string {
  const { condition } = rule;
  const what = measured(rule, about);
  const minutes = rule.window_minutes ?? 60;
  switch (condition.kind) {
    case 'threshold': {
      const above = typeof condition.below !== 'number';
      const bound = amount(above ? condition.above : condition.below, rule, about);
      return `${what} over the last ${lasts(minutes)} is ${above ? 'above' : 'below'} ${bound}`;
    }
    case 'regression': {
      const { newer, older } = about.versions ?? { newer: 'the latest version', older: 'the previous version' };
      const time = condition.compare === 'same_age' ? 'at the same time after its release' : 'on the same days';
      return `${what} in ${newer} is ${worse(rule, about)} than in ${older} ${time}, over at most ${span(minutes)}`;
    }
    case 'last_week':
      return `${what} over the last ${lasts(minutes)} is ${worse(rule, about)} than at the same time last week`;
    case 'absence':
      return absent(rule, about);
    case 'appearance': {
      const [first = 'group', ...more] = dimensions(rule);
      const all = [first, ...more].join(' and ');
      const days = condition.unseen_days ?? 28;
      return `a new ${all} occurs in ${subject(rule, {})}: seen in the last ${lasts(minutes)}, and not in the ${span(days * 1440)} before`;
    }
  }
}

function absent(rule: RuleParts, about: About): string {
  const what = `no ${noun(rule.metric.signal)}${places(rule, about)} arrive for ${span(rule.window_minutes ?? 60)}`;
  const any = about.group ? [] : dimensions(rule);
  if (any.length === 0) return `${what}, after ${noun(rule.metric.signal)} arrived in the 7 days before`;
  return `${what} for any ${any.join(' and ')} that sent data in the 7 days before`;
}

/** `the p75 of spans where kind is operation`. */
function measured(rule: RuleParts, about: About): string {
  const { measure, signal } = rule.metric;
  const own = MEASURES[measure];
  if (own) return own + places(rule, about);
  const of = subject(rule, about);
  if (measure === 'count') return `the number of ${of}`;
  if (measure === 'installs' || measure === 'sessions') return `the number of ${measure} with ${of}`;
  if (signal === 'traffic' && measure === 'bytes') return `the ${of}`;
  const name = measureName(measure);
  const words = /^(T\d |Total )?p\d\d$/.test(name) ? name : lowerFirst(name);
  if (measure.endsWith('_share')) return `the share of ${of} (${words})`;
  return `the ${words} of ${of}`;
}

/** Names the counted or measured events: by their own name if the rule watches only one name, or by their signal. */
function subject(rule: RuleParts, about: About): string {
  const name = onlyValue(rule, about, 'name');
  const shown = rule.metric.signal === 'metrics' && name ? lowerFirst(metricLabel(name)) : name;
  const what = shown === null ? noun(rule.metric.signal) : shown || '(none)';
  return what + places(rule, about, name !== null);
}

/** The single value of a dimension in all watched events. `null` if there may be several. */
function onlyValue({ metric }: RuleParts, { group = {} }: About, name: string): string | null {
  const filter = metric.filters?.[name];
  return group[name] ?? (filter?.length === 1 ? filter[0]! : null);
}

/** ` on Cart where kind is operation or construction`. */
function places({ metric }: RuleParts, { group = {} }: About, named = false): string {
  const page = onlyValue({ metric } as RuleParts, { group }, 'page');
  const left: Record<string, string[]> = { ...metric.filters };
  for (const [name, value] of Object.entries(group)) left[name] = [value];
  if ('title' in left) delete left.group_id;
  if (named) delete left.name;
  if (page !== null) delete left.page;
  const wheres = Object.entries(left).map(filterText);
  const on = page === null ? '' : ` on ${page || '(none)'}`;
  return on + (wheres.length > 0 ? ` where ${wheres.join(' and ')}` : '');
}

/** Differences of shares are in percentage points, because "0.5 %" could also mean 0.5 % of the share. */
function difference(value: number, rule: RuleParts, about: About): string {
  const isShare = (about.unit ?? unitOf(rule.metric.measure)) === 'share';
  return isShare && Number.isFinite(value) ? `${format(value * 100, '')} points` : amount(value, rule, about);
}

/** `at least 5 % and 10 ms slower`. */
function worse(rule: RuleParts, about: About): string {
  const effect = ('effect' in rule.condition ? rule.condition.effect : undefined) ?? {};
  const relative = effect.least_relative ?? 0.2;
  const absolute = effect.least_absolute ?? 0;
  const least = [
    ...(relative !== 0 ? [format(relative, 'share').replace(/^–$/, '…')] : []),
    ...(absolute !== 0 ? [difference(absolute, rule, about)] : []),
  ];
  return `at least ${least.join(' and ') || '…'} ${comparative(rule, about, effect.worse ?? undefined)}`;
}

function comparative({ metric: { measure } }: RuleParts, about: About, chosen?: 'up' | 'down'): string {
  const better = about.better ?? (['fps', 'completed_share'].includes(measure) ? 'higher' : 'lower');
  const up = chosen ? chosen === 'up' : better !== 'higher';
  if (/^(\w+_)?(p\d\d|mean|max)_[mu]s$/.test(measure)) return up ? 'slower' : 'faster';
  return up ? 'higher' : 'lower';
}

/** `with at least 100 samples on each side and p below 0.001`, `for 10 minutes`. */
function limits(rule: RuleParts): string[] {
  const { condition, least_samples: samples, for_minutes: lasting } = rule;
  const compares = isComparison(condition);
  const significance = compares ? (condition.effect?.significance ?? 0.001) : 1;
  const needs = [
    ...(samples !== undefined && condition.kind !== 'absence'
      ? [`at least ${number(samples)} ${samples === 1 ? 'sample' : 'samples'}${compares ? ' on each side' : ''}`]
      : []),
    ...(significance < 1 ? [`p below ${significance}`] : []),
  ];
  return [...(needs.length > 0 ? [`with ${needs.join(' and ')}`] : []), ...(lasting ? [`for ${span(lasting)}`] : [])];
}

function resolves(rule: RuleParts, about: About): string[] {
  const { condition } = rule;
  const keep = rule.keep_minutes ? [`Resolve after ${span(rule.keep_minutes)} with too few samples.`] : [];
  switch (condition.kind) {
    case 'threshold': {
      const side = typeof condition.below === 'number' ? 'above' : 'below';
      const back = typeof condition.recover === 'number' ? amount(condition.recover, rule, about) : 'the threshold';
      return [`Resolve at ${back} or ${side}.`, ...keep];
    }
    case 'regression':
    case 'last_week': {
      const part = format(condition.effect?.recover ?? 0.5, 'share').replace(/^–$/, '…');
      return [`Resolve when the change is below ${part} of the minimum change.`, ...keep];
    }
    case 'absence':
      return ['Resolve when data arrives again.'];
    case 'appearance':
      return [`Resolve after ${span(rule.window_minutes ?? 60)}, when the group is no longer new.`];
  }
}

const NAMES: Record<string, string> = {
  mon: 'Mon',
  tue: 'Tue',
  wed: 'Wed',
  thu: 'Thu',
  fri: 'Fri',
  sat: 'Sat',
  sun: 'Sun',
};

function muted(window: Schemas['MuteWindow']): string {
  const days = window.days?.length ? `on ${window.days.map((day) => NAMES[day] ?? day).join(', ')}` : 'every day';
  const offset = window.utc_offset_minutes ?? 0;
  return `Mute ${days} from ${window.from} to ${window.to} (${offsetText(offset)}).`;
}

function raises({ action }: RuleParts): string[] {
  const rates = Object.entries({ ...action?.sampling }).filter(([, share]) => typeof share === 'number');
  const all = rates.map(([signal, share]) => `${format(share, 'share')} of ${noun(signal)}`);
  if (all.length === 0) return [];
  return [`While the rule fires, affected devices send ${all.join(' and ')}.`];
}

/** A duration, worded to follow "the last": `hour`, `30 minutes`. */
function lasts(minutes: number): string {
  return span(minutes).replace(/^1 /, '');
}

function number(value: number): string {
  return Number.isFinite(value) ? grouped(value) : '…';
}

/** A value with its unit, or an ellipsis while the field is empty. */
function amount(value: number | null | undefined, { metric }: RuleParts, about: About): string {
  if (typeof value !== 'number' || !Number.isFinite(value)) return '…';
  const unit = about.unit ?? unitOf(metric.measure);
  const per = { per_second: ' per second', per_minute: ' per minute' }[unit] ?? '';
  return format(value, unit) + per;
}

/** The unit of a measure, derived from its name. */
export function unitOf(measure: string): string {
  if (/_us(_|$)/.test(measure)) return 'us';
  if (/_ms(_|$)/.test(measure)) return 'ms';
  if (measure.endsWith('_share')) return 'share';
  if (/(^|_)bytes(_|$)/.test(measure)) return 'bytes';
  return 'count';
}
