// Describes the configuration of one device: its values, the source of each value, and why overrides apply or not. Pure.

import type { Schemas } from '../api/client';
import { dateTime, decimal, format, fromMicros, grouped } from '../format/units';
import { FIELDS, fieldOf } from './condition_rows';
import { isValues } from './document';
import { BASE, fieldsOf, kindOf, labelOf, shownText, type Schema } from './schema';

type Answer = Schemas['DeviceConfiguration'];
type Override = Schemas['ExplainedOverride'];
type Part = Schemas['UnmetPart'];
export type Attributes = Schemas['DeviceAttributes'];
export type AttributeName = keyof Attributes;

/** The attributes of a device. The install is first, because the server usually knows the other attributes of an install. */
export const ATTRIBUTES = FIELDS.flatMap(({ name, label }) => (name === 'percentage' ? [] : [{ name, label }])).sort(
  (one, other) => Number(other.name === 'install_id') - Number(one.name === 'install_id'),
);

/** The URL parameter of an attribute. The prefix is needed, because a parameter with the name of a dimension would filter all pages. */
export const parameterOf = (name: AttributeName | 'revision') => `device.${name}`;

/** Builds the device query from the URL. Returns `null` if the URL has no attributes and no revision. */
export function questionOf(query: URLSearchParams): Schemas['DeviceQuestion'] | null {
  const given = ATTRIBUTES.flatMap(({ name }) => {
    const text = query.get(parameterOf(name))?.trim();
    return text ? [[name, name === 'build' ? wholeNumber(text) : text] as const] : [];
  });
  const revision = query.get(parameterOf('revision'))?.trim();
  if (given.length === 0 && !revision) return null;
  return { attributes: Object.fromEntries(given), ...(revision && { revision: wholeNumber(revision) as number }) };
}

/** Text that is not a number is sent unchanged, so that the server reports the fault. */
function wholeNumber(text: string): number | string {
  return /^\d+$/.test(text) ? Number(text) : text;
}

/** The attributes of the answer: label, value, and whether the install reported it. */
export function attributesOf({
  attributes,
  last_report,
}: Answer): { label: string; value: string; reported: boolean }[] {
  return ATTRIBUTES.flatMap(({ name, label }) => {
    const value = attributes[name];
    if (value === null || value === undefined || value === '') return [];
    return [{ label, value: String(value), reported: last_report?.filled.includes(name) ?? false }];
  });
}

/**
 * Sentences about the revision that the device has and the revision that it gets. The answer for a draft has the number of the current
 * revision.
 */
export function revisionText(answer: Answer, isDraft = false): string[] {
  const { revision, current_revision, last_report, attributes } = answer;
  const saved = revision === 0 ? 'the defaults' : `revision ${revision}`;
  const shown = isDraft ? 'the draft' : saved;
  if (isDraft || revision !== current_revision) {
    const current = current_revision === 0 ? 'the defaults' : `revision ${current_revision}`;
    return [`Shows ${shown}. Devices get ${current}.`];
  }
  if (!last_report) {
    const unknown = 'No batch of this install arrived in the last 7 days, so only the attributes below are known.';
    return [`A device with these attributes gets ${shown}.`, ...(attributes.install_id ? [unknown] : [])];
  }
  const had = last_report.revision === 0 ? 'no revision' : `revision ${last_report.revision}`;
  const sent = `The install last sent data on ${dateTime(fromMicros(last_report.received_at))} and had ${had}.`;
  if (last_report.revision >= revision)
    return [revision === 0 ? `${sent} It gets the defaults.` : `${sent} That is the current revision.`];
  return [`${sent} It gets ${shown} with its next fetch.`];
}

/** A value of the configuration, as a row of the table. */
export interface ValueRow {
  key: string;
  /** The labels of the form, from the outside in. */
  place: string;
  value: string;
  from: string;
  isDefault: boolean;
}

export function valueRows({ keys }: Answer): ValueRow[] {
  return keys.map((one) => {
    const { place, schema } = placeOf(one.key);
    const from = one.source === 'override' ? (one.set_by ?? '') : one.source === 'base' ? 'Base' : 'Default';
    return {
      key: one.key,
      place: place.join(' › '),
      value: valueText(one.value, schema),
      from,
      isDefault: one.source === 'default',
    };
  });
}

/** The labels of a key and its schema. An entry of a map has its own name, which may contain dots. */
function placeOf(key: string): { place: string[]; schema: Schema } {
  const names = key.split('.');
  const place: string[] = [];
  let schema = BASE;
  for (const [index, name] of names.entries()) {
    if (kindOf(schema) !== 'section') {
      const entry = schema.additionalProperties;
      return { place: [...place, names.slice(index).join('.')], schema: typeof entry === 'object' ? entry : {} };
    }
    schema = schema.properties?.[name] ?? {};
    place.push(labelOf(name, schema));
  }
  return { place, schema };
}

function valueText(value: unknown, schema: Schema): string {
  if (value === null || value === undefined) return 'not set';
  if (!isValues(value)) return shownText(value, schema);
  if (!schema.properties) return JSON.stringify(value);
  return fieldsOf(schema)
    .map(([name, one]) => shownText(value[name], one))
    .join(', ');
}

export const OUTCOMES: Record<Override['outcome'], { label: string; badge: string }> = {
  applied: { label: 'applies', badge: 'good' },
  disabled: { label: 'disabled', badge: '' },
  expired: { label: 'expired', badge: '' },
  unmet: { label: 'does not apply', badge: '' },
};

/** Why an override applies or not, in sentences. */
export function overrideText(one: Override): string {
  const until = one.expires_at ? dateTime(fromMicros(one.expires_at)) : '';
  switch (one.outcome) {
    case 'applied':
      return [`Sets ${counted(one.keys, 'value')}${until && ` until ${until}`}.`, overriddenText(one)]
        .filter(Boolean)
        .join(' ');
    case 'disabled':
    case 'expired': {
      const reason = one.outcome === 'disabled' ? 'It is disabled.' : `It ended on ${until}.`;
      return one.matches ? `${reason} The device meets its condition.` : `${reason} ${unmetText(one)}`;
    }
    default:
      return unmetText(one);
  }
}

const counted = (count: number, what: string) => `${grouped(count)} ${count === 1 ? what : `${what}s`}`;

function overriddenText({ overridden, overridden_keys: all }: Override): string {
  if (all === 0) return '';
  const named = overridden.map(({ key, by }) => `${placeOf(key).place.join(' › ')} (by ${by})`);
  const more = all > named.length ? `, and ${grouped(all - named.length)} more` : '';
  return `Overridden later: ${named.join(', ')}${more}.`;
}

function unmetText({ unmet, unmet_parts: all }: Override): string {
  const more =
    all > unmet.length
      ? [`${grouped(all - unmet.length)} more ${all - unmet.length === 1 ? 'condition is' : 'conditions are'} not met.`]
      : [];
  return [...unmet.map(partText), ...more].join(' ') || 'The device does not meet its condition.';
}

/** Why a part of a condition is not met: `App version is 4.11.0. Wanted: >=4.12.` The part may be one of several alternatives. */
function partText({ condition, negated, device, wanted, left_out, percentage }: Part): string {
  if (percentage) return percentageText(percentage, negated);
  const label = fieldOf(condition)?.label ?? condition;
  const list = left_out > 0 ? `${wanted.join(', ')} or ${grouped(left_out)} more` : wanted.join(' or ');
  return `${label} is ${device ?? 'unknown'}. Wanted: ${negated ? 'not ' : ''}${list}.`;
}

function percentageText({ below, install }: NonNullable<Part['percentage']>, negated: boolean): string {
  if (install === null || install === undefined) return 'The install is unknown, so no percentage includes it.';
  const reach = `the override ${negated ? 'leaves out' : 'reaches'} the first ${decimal(below, 3)} %`;
  return `The install is at ${decimal(install, 3)} %, and ${reach}.`;
}

/** Says in which share of its sessions the device collects data. Empty if it collects in all sessions. */
export function collectionText({ document }: Answer): string {
  if (!document.enabled) return 'Collection is off: the device collects and sends nothing.';
  const rate = document.sampling.session_rate;
  if (rate >= 1) return '';
  return `The device collects in ${format(rate, 'share')} of its sessions, and decides at the start of each session.`;
}
