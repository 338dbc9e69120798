// Names the fields that differ between two configurations. Pure.

import { dateTime } from '../format/units';
import { isValues, merged, type Values } from './document';
import { BASE, defaultsOf, fieldsOf, kindOf, labelOf, shownText, type Schema } from './schema';

export interface FieldChange {
  /** Where the field is, from the outside in: `Base`, or `Override “beta”`, then the labels of the form. */
  place: string[];
  /** The values before and after, as the form shows them. `before` is missing if `after` describes the whole change. */
  before?: string;
  after: string;
}

interface Override {
  id: string;
  note?: string;
  enabled?: boolean;
  expires_at?: string | null;
  when?: unknown;
  patch?: unknown;
}

const DEFAULTS = defaultsOf(BASE);

/** What a field without a value inherits from. */
export type Source = 'Default' | 'Base' | 'Active value';

/** The values that the devices of an override would have without the override. */
export interface Active {
  values: Values;
  from: Source;
}

/** The number of installs that an override matches, and how many of these installs each earlier override matches. */
export interface Matches {
  id: string;
  installs: number;
  earlier: { value: string; installs: number }[];
}

/**
 * The values that the devices of each override would have without the override: the values of the base, changed by the earlier overrides
 * that match all installs of the override. `base` has all defaults filled in.
 */
export function activeOf(base: Values, overrides: Pick<Override, 'id' | 'patch'>[], matches: Matches[]): Active[] {
  return overrides.map(({ id }, index) => {
    const found = matches.find((one) => one.id === id);
    const isCertain = (other: string) =>
      found?.earlier.some(({ value, installs }) => value === other && installs > 0 && installs === found.installs);
    const earlier = overrides.slice(0, index).filter((one) => isCertain(one.id));
    const values = earlier.reduce<unknown>((values, { patch }) => merged(values, patch), base) as Values;
    return { values, from: earlier.length > 0 ? 'Active value' : 'Base' };
  });
}

/**
 * The changes of a configuration, field by field, in the order of the form. `active` has, by the id of an override, the values that its
 * devices would have without the override.
 */
export function changesOf(before: unknown, after: unknown, active = new Map<string, Active>()): FieldChange[] {
  const [old, now] = [partsOf(before), partsOf(after)];
  const inBase = fieldChanges(
    { schema: BASE, place: ['Base'], inherited: DEFAULTS, from: 'default' },
    old.base,
    now.base,
  );
  const completeBase = merged(DEFAULTS, now.base) as Values;
  const inherited = (id: string) => active.get(id) ?? { values: completeBase, from: 'Base' };
  return [...inBase, ...overrideChanges(old.overrides, now.overrides, inherited)];
}

function partsOf(configuration: unknown): { base: unknown; overrides: Override[] } {
  const { base = {}, overrides = [] } = (configuration ?? {}) as { base?: unknown; overrides?: Override[] };
  return { base, overrides };
}

interface Section {
  schema: Schema;
  place: string[];
  inherited: unknown;
  /** The source of the inherited values, such as `base`. */
  from: string;
}

function fieldChanges(section: Section, before: unknown, after: unknown): FieldChange[] {
  return fieldsOf(section.schema).flatMap(([name, schema]) => {
    const inner = {
      ...section,
      schema,
      place: [...section.place, labelOf(name, schema)],
      inherited: at(section.inherited, name),
    };
    const [old, now] = [at(before, name), at(after, name)];
    if (kindOf(schema) === 'section') return fieldChanges(inner, old, now);
    if (same(old, now)) return [];
    return [{ place: inner.place, ...valuesOf(inner, old, now) }];
  });
}

function valuesOf({ schema, inherited, from }: Section, before: unknown, after: unknown) {
  const shown = (value: unknown) =>
    value === undefined ? `${shownText(inherited, schema)} (${from})` : shownText(value, schema);
  // Two long lists of the same length have the same text.
  if (shown(before) === shown(after)) return { after: `${shown(after)}, changed` };
  return { before: shown(before), after: shown(after) };
}

/** A field that both an override and an earlier override set. */
export interface Clash {
  /** The labels of the field, from the outside in. */
  place: string[];
  /** The id of the earlier override, or an empty text for the base, and the value that the override or base sets. */
  id: string;
  value: string;
  /** The installs that match both, if known. */
  installs?: number;
}

/**
 * Finds the fields that both an override and an earlier override set. If several earlier overrides set a field, reports the last of these,
 * because later overrides win. Ignores overrides that are off, and earlier overrides that are known to match none of the installs.
 */
export function clashesOf(overrides: Pick<Override, 'id' | 'enabled' | 'patch'>[], matches: Matches[] = []): Clash[][] {
  const set = new Map<string, Clash>();
  return overrides.map(({ id, enabled, patch }) => {
    if (enabled === false) return [];
    const found = matches.find((one) => one.id === id);
    const own = setFields(BASE, [], patch).map((field) => ({ key: field.place.join('.'), clash: { id, ...field } }));
    const clashes = own.flatMap(({ key }) => {
      const clash = set.get(key);
      if (!clash || !found || found.installs === 0) return clash ?? [];
      const both = found.earlier.find(({ value }) => value === clash.id)?.installs ?? 0;
      return both === 0 ? [] : { ...clash, installs: both };
    });
    own.forEach(({ key, clash }) => set.set(key, clash));
    return clashes;
  });
}

/** Values that have a list of exceptions. An exception stays in effect if a later override changes only the value. */
const WITH_EXCEPTIONS = [
  ['sampling', 'spans', 'default'],
  ['jank', 'strategies'],
];

/**
 * Finds, for each override, the exceptions that still apply to values of `WITH_EXCEPTIONS` that the override sets. Such exceptions come
 * from the last override before it that sets exceptions, or from the base.
 */
export function exceptionsAbove(base: unknown, overrides: Pick<Override, 'id' | 'enabled' | 'patch'>[]): Clash[][] {
  const on = [{ id: '', patch: base }, ...overrides.filter(({ enabled }) => enabled !== false)];
  return overrides.map((one) => {
    const before = on.slice(0, Math.max(0, on.indexOf(one))).reverse();
    return WITH_EXCEPTIONS.flatMap((path) => {
      const beside = [...path.slice(0, -1), 'overrides'];
      if (inside(one.patch, path) === undefined || inside(one.patch, beside) !== undefined) return [];
      const setter = before.find(({ patch }) => inside(patch, beside) !== undefined);
      const list = inside(setter?.patch, beside);
      if (!setter || !Array.isArray(list) || list.length === 0) return [];
      return [{ id: setter.id, place: labelsOf(beside), value: shownText(list, schemaOf(beside)) }];
    });
  });
}

function inside(values: unknown, path: string[]): unknown {
  return path.reduce(at, values);
}

function labelsOf(path: string[]): string[] {
  return path.map((name, index) => labelOf(name, schemaOf(path.slice(0, index + 1))));
}

function schemaOf(path: string[]): Schema {
  return path.reduce((schema, name) => new Map(fieldsOf(schema)).get(name) ?? schema, BASE);
}

function setFields(section: Schema, place: string[], values: unknown): { place: string[]; value: string }[] {
  return fieldsOf(section).flatMap(([name, schema]) => {
    const [inner, value] = [[...place, labelOf(name, schema)], at(values, name)];
    if (value === undefined) return [];
    return kindOf(schema) === 'section'
      ? setFields(schema, inner, value)
      : [{ place: inner, value: shownText(value, schema) }];
  });
}

function overrideChanges(before: Override[], after: Override[], inherited: (id: string) => Active): FieldChange[] {
  const changes: FieldChange[] = [];
  for (const one of after) {
    const place = [`Override “${one.id}”`];
    const old = before.find(({ id }) => id === one.id);
    const { values, from } = inherited(one.id);
    const section = { schema: BASE, place, inherited: values, from: from.toLowerCase() };
    if (!old) changes.push({ place, after: one.enabled === false ? 'added, off' : 'added' });
    else changes.push(...settingChanges(place, old, one));
    changes.push(...fieldChanges(section, old?.patch, one.patch));
  }
  for (const { id } of before) {
    if (!after.some((one) => one.id === id)) changes.push({ place: [`Override “${id}”`], after: 'removed' });
  }
  const order = (list: Override[], other: Override[]) =>
    list.map(({ id }) => id).filter((id) => other.some((one) => one.id === id));
  if (!same(order(before, after), order(after, before))) {
    changes.push({ place: ['Order of the overrides'], after: 'changed' });
  }
  return changes;
}

function settingChanges(place: string[], old: Override, now: Override): FieldChange[] {
  const changes: FieldChange[] = [];
  const state = ({ enabled }: Override) => (enabled === false ? 'off' : 'on');
  if (state(old) !== state(now)) changes.push({ place, before: state(old), after: state(now) });
  if (!same(old.when, now.when)) changes.push({ place: [...place, 'Condition'], after: 'changed' });
  if ((old.note ?? '') !== (now.note ?? '')) changes.push({ place: [...place, 'Note'], after: 'changed' });
  if ((old.expires_at ?? '') !== (now.expires_at ?? '')) {
    const end = ({ expires_at }: Override) => (expires_at ? dateTime(new Date(expires_at)) : 'no end');
    changes.push({ place: [...place, 'End'], before: end(old), after: end(now) });
  }
  return changes;
}

function at(value: unknown, name: string): unknown {
  return isValues(value) ? (value as Values)[name] : undefined;
}

/** Whether two values of JSON are equal. The order of the keys of an object does not count. */
function same(one: unknown, other: unknown): boolean {
  const sorted = (_: string, value: unknown) =>
    isValues(value) ? Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1))) : value;
  return JSON.stringify(one, sorted) === JSON.stringify(other, sorted);
}
