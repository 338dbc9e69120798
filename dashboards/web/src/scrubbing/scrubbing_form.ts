// The form of the scrubbing rules. Pure.

import type { Schemas } from '../api/client';

type Document = Schemas['Scrubbing'];

export const MOST_RULES = 20;

export interface ScrubbingFields {
  builtIn: boolean;
  rules: { name: string; pattern: string }[];
  /** One name per line. */
  secret: string;
  plain: string;
}

/** The matches of the built-in rules, and their replacements. */
export const BUILT_IN: [found: string, instead: string][] = [
  ['Query strings of URLs', '?[query]'],
  ['User names and passwords in URLs', '[user]'],
  ['E-mail addresses', '[email]'],
  ['Card numbers', '[card]'],
  ['Phone numbers', '[phone]'],
  ['Tokens, passwords, API keys and cookies', '[secret]'],
  ['Values of attributes such as password, authorization or iban', '[secret]'],
];

export function fieldsOf({ built_in, rules, secret_attributes, plain_attributes }: Document): ScrubbingFields {
  return {
    builtIn: built_in,
    rules: rules.map(({ name, pattern }) => ({ name, pattern })),
    secret: secret_attributes.join('\n'),
    plain: plain_attributes.join('\n'),
  };
}

/** Leaves out empty rules. */
export function documentOf({ builtIn, rules, secret, plain }: ScrubbingFields): Document {
  return {
    built_in: builtIn,
    rules: rules
      .filter(({ name, pattern }) => name.trim() !== '' || pattern !== '')
      .map(({ name, pattern }) => ({ name: name.trim(), pattern })),
    secret_attributes: names(secret),
    plain_attributes: names(plain),
  };
}

/** A canonical text, equal for documents with the same effect. */
export function textOf(document: Document): string {
  return JSON.stringify(documentOf(fieldsOf(document)));
}

function names(lines: string): string[] {
  return [...new Set(lines.split('\n').map((line) => line.trim()))].filter(Boolean);
}

/** Attributes in both lists. The server rejects such a document. */
export function inBothLists({ secret_attributes, plain_attributes }: Document): string[] {
  const plain = new Set(plain_attributes.map((name) => name.toLowerCase()));
  return secret_attributes.filter((name) => plain.has(name.toLowerCase()));
}

export function nameFault(name: string): string {
  const text = name.trim();
  if (text === '') return 'Enter a name.';
  return /^[a-z0-9_]{1,32}$/.test(text) ? '' : 'Use at most 32 characters of a–z, 0–9 and _.';
}

const PLACES: Record<string, string> = {
  span: 'Span name',
  page: 'Page',
  span_event: 'Span event',
  attribute: 'Attribute',
  log_line: 'Log line',
  request_path: 'Request path',
  metric: 'Metric name',
  user_id: 'User id',
};

/** The place of a text, such as `Span name`. */
export function placeText({ place, attribute }: Pick<Schemas['ScrubbedText'], 'place' | 'attribute'>): string {
  const text = PLACES[place] ?? place.replaceAll('_', ' ');
  return attribute ? `${text} ${attribute}` : text;
}
