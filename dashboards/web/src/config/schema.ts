// The schema of the remote configuration, taken from the API document: the type, meaning, unit and range of each field. Pure.

import { grouped, tidy } from '../format/units';
import generated from '../../.generated/configuration.json';

export interface Schema {
  type?: string | string[];
  description?: string;
  default?: unknown;
  minimum?: number;
  maximum?: number;
  maxItems?: number;
  maxProperties?: number;
  enum?: (string | null)[];
  'x-unit'?: string;
  'x-order'?: number;
  properties?: Record<string, Schema>;
  required?: string[];
  items?: Schema;
  additionalProperties?: Schema | boolean;
}

export type Kind = 'section' | 'flag' | 'number' | 'choice' | 'text' | 'texts' | 'rows' | 'map' | 'other';

export const BASE = generated.base as Schema;
export const MOST_OVERRIDES = generated.overrides.most;

export function kindOf(schema: Schema): Kind {
  const type = [schema.type ?? []].flat()[0];
  if (schema.enum) return 'choice';
  if (type === 'boolean') return 'flag';
  if (type === 'integer' || type === 'number') return 'number';
  if (type === 'string') return 'text';
  if (type === 'array') return schema.items?.properties ? 'rows' : 'texts';
  if (schema.properties) return 'section';
  const values = schema.additionalProperties;
  return typeof values === 'object' && values.properties ? 'map' : 'other';
}

/** The fields of a section, in the order of the server. */
export function fieldsOf(section: Schema): [string, Schema][] {
  const order = (schema: Schema) => schema['x-order'] ?? 0;
  return Object.entries(section.properties ?? {}).sort(([, one], [, other]) => order(one) - order(other));
}

const WORDS: Record<string, string> = { anr: 'ANR', api: 'API', mime: 'MIME', wifi: 'Wi-Fi' };
const UNIT_ENDINGS = /_(ms|s|bytes)$/;

/** The label of a field: `max_stacks_per_session` becomes `Max stacks per session`. */
export function labelOf(name: string, schema: Schema = {}): string {
  // Both lists have the same name.
  if (schema.items?.properties?.rate) return 'Rates for specific spans';
  if (schema.items?.properties?.page) return 'Rules for specific pages';
  const words = name
    .replace(UNIT_ENDINGS, '')
    .split('_')
    .map((word) => WORDS[word] ?? word)
    .join(' ');
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** The description of a field without its range and unit, which the form shows separately. */
export function meaningOf(schema: Schema): string {
  const text = (schema.description ?? '').replaceAll('`', '').replaceAll('\n', ' ');
  return text
    .replace(/, in (milli)?seconds(?=[:.])/, '')
    .replace(/, 0 to 1(?=[.:])/, '')
    .replace(/: [\d,]+ to [\d,]+( each)?(?=\.)/, '')
    .replace(/ ?At most [\d,]+\.$/, '');
}

const UNITS: Record<string, string> = { ms: 'ms', s: 's', bytes: 'bytes', share: '%' };

export function unitOf(schema: Schema): string {
  return UNITS[schema['x-unit'] ?? ''] ?? '';
}

function isShare(schema: Schema): boolean {
  return schema['x-unit'] === 'share';
}

/** The text of a value in its field. Shares are in percent. */
export function typedText(value: unknown, schema: Schema): string {
  if (value === undefined || value === null) return '';
  if (typeof value === 'number' && isShare(schema)) return String(tidy(value * 100));
  return typeof value === 'object' ? JSON.stringify(value) : String(value);
}

/** The value of a typed text. Empty text is `undefined`. Text that is not a number is kept, so that the server reports the fault. */
export function typedValue(text: string, schema: Schema): unknown {
  if (kindOf(schema) !== 'number') return text === '' ? undefined : text;
  const typed = text.trim();
  if (typed === '') return undefined;
  const number = Number(typed);
  if (!Number.isFinite(number)) return typed;
  return isShare(schema) ? tidy(number / 100) : number;
}

/** The length of the longest list that is shown whole. */
const MOST_SHOWN = 3;

/** A value for display: `20 %`, `5,000 ms`, `on`. */
export function shownText(value: unknown, schema: Schema): string {
  if (value === undefined || value === null) return 'none';
  if (typeof value === 'boolean') return value ? 'on' : 'off';
  if (Array.isArray(value)) return value.length === 0 ? 'none' : listText(value, schema.items ?? {});
  if (typeof value === 'number') {
    const number = isShare(schema) ? tidy(value * 100) : value;
    return `${grouped(number)} ${unitOf(schema)}`.trim();
  }
  if (typeof value === 'object') return Object.keys(value).join(', ') || 'none';
  return String(value);
}

/** A short list is shown whole: `checkout* 100 %`. */
function listText(list: unknown[], of: Schema): string {
  if (list.length > MOST_SHOWN) return `${list.length} in the list`;
  const row = (value: Record<string, unknown>) =>
    fieldsOf(of)
      .filter(([name]) => value[name] !== undefined)
      .map(([name, schema]) => shownText(value[name], schema))
      .join(' ');
  // The list may be half typed.
  const isRow = (one: unknown): one is Record<string, unknown> => typeof one === 'object' && one !== null;
  return list.map((one) => (of.properties && isRow(one) ? row(one) : shownText(one, of))).join(', ');
}

/** The range of a field, such as `30 to 86,400 s`. Empty for a field without a range. */
export function rangeOf(schema: Schema): string {
  if (kindOf(schema) === 'texts' || kindOf(schema) === 'rows') {
    return schema.maxItems ? `at most ${grouped(schema.maxItems)}` : '';
  }
  if (schema.minimum === undefined || schema.maximum === undefined) return '';
  const [least, most] = isShare(schema) ? [0, 100] : [schema.minimum, schema.maximum];
  return `${grouped(least)} to ${grouped(most)} ${unitOf(schema)}`.trim();
}

/** The fault of a single value, which needs no check by the server. */
export function faultOf(value: unknown, schema: Schema): string | undefined {
  if (kindOf(schema) !== 'number' || value === undefined || value === null) return undefined;
  const isWhole = [schema.type].flat()[0] !== 'integer' || Number.isInteger(value);
  const fits =
    typeof value === 'number' && isWhole && value >= (schema.minimum ?? value) && value <= (schema.maximum ?? value);
  return fits ? undefined : `Enter a ${isShare(schema) ? 'number' : 'whole number'} from ${rangeOf(schema)}.`;
}

/** The default values. */
export function defaultsOf(schema: Schema): Record<string, unknown> {
  const entries = Object.entries(schema.properties ?? {});
  return Object.fromEntries(
    entries.map(([name, one]) => [name, kindOf(one) === 'section' ? defaultsOf(one) : one.default]),
  );
}
