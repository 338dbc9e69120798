// Reads and changes single values of a document of the remote configuration. Pure.

import type { Fault } from '../api/problem';
import { kindOf, type Schema } from './schema';

export type Values = Record<string, unknown>;
export type Path = (string | number)[];

export function isValues(value: unknown): value is Values {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

export function valueAt(value: unknown, path: Path): unknown {
  return path.reduce<unknown>((inner, key) => (inner as Values | undefined)?.[key as string], value);
}

/** Returns a copy with one value set. `undefined` removes the value. Also removes objects that become empty, but keeps list rows. */
export function withValue(value: unknown, path: Path, wanted: unknown): unknown {
  const [key, ...rest] = path;
  if (key === undefined) return wanted;
  if (typeof key === 'number') {
    const list = Array.isArray(value) ? [...value] : [];
    const inner = withValue(list[key], rest, wanted);
    if (inner === undefined && rest.length === 0) list.splice(key, 1);
    else list[key] = inner ?? {};
    return list;
  }
  const copy: Values = isValues(value) ? { ...value } : {};
  const inner = withValue(copy[key], rest, wanted);
  if (inner === undefined) delete copy[key];
  else copy[key] = inner;
  return Object.keys(copy).length > 0 || wanted !== undefined ? copy : undefined;
}

/** A path in the notation of faults: `['jank', 'strategies', 0, 'count']` is `jank.strategies[0].count`. */
export function pathText(path: Path): string {
  return path.map((key, index) => (typeof key === 'number' ? `[${key}]` : index === 0 ? key : `.${key}`)).join('');
}

/** The fault message of a field, or of an element of its list of texts. */
export function faultAt(faults: Fault[], path: Path): string | undefined {
  const at = pathText(path);
  return faults.find(
    (one) => one.path === at || /^\[\d+\]$/.test(one.path.startsWith(at) ? one.path.slice(at.length) : ''),
  )?.message;
}

/** Whether the form has a field for this path. */
export function hasField(path: string, schema: Schema): boolean {
  const keys = path.match(/[^.[\]]+/g) ?? [];
  let at: Schema | undefined = schema;
  for (const key of keys) {
    if (!at) return false;
    const kind = kindOf(at);
    if (kind === 'other') return false;
    if (kind === 'rows' || kind === 'texts') at = at.items;
    else if (kind === 'map') at = at.additionalProperties as Schema;
    else at = at.properties?.[key];
  }
  return at !== undefined && keys.length > 0;
}

/** Merges a patch into a document, as the server does: objects are merged, and `null` removes a value. */
export function merged(under: unknown, over: unknown): unknown {
  if (!isValues(over)) return over;
  const result: Values = isValues(under) ? { ...under } : {};
  for (const [key, value] of Object.entries(over)) {
    if (value === null) delete result[key];
    else result[key] = merged(result[key], value);
  }
  return result;
}

/** The number of fields of a section that the document sets. */
export function countOwn(value: unknown, schema: Schema): number {
  if (value === undefined) return 0;
  if (kindOf(schema) !== 'section' || !isValues(value)) return 1;
  return Object.entries(value).reduce(
    (sum, [name, inner]) => sum + countOwn(inner, schema.properties?.[name] ?? {}),
    0,
  );
}
