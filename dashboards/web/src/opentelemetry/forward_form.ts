// The form for forwarding to another collector. Pure.

import type { Schemas } from '../api/client';

export type Forward = Schemas['Forward'];
type Change = Schemas['ForwardChange'];

export const MOST_RULES = 20;
const DAY_MS = 86_400_000;

export interface SpanRuleFields {
  name: string;
  /** The minimum duration in milliseconds. Empty means any duration. */
  least: string;
  onlyErrors: boolean;
}

export interface ForwardFields {
  endpoint: string;
  rules: SpanRuleFields[];
  incidents: boolean;
  compression: Forward['compression'];
  /** `name: value`, one per line. Empty keeps the saved headers. */
  headers: string;
  removesHeaders: boolean;
}

export function fieldsOf({ endpoint, spans, incidents, compression }: Forward): ForwardFields {
  const rules = spans.map((rule) => ({
    name: rule.name,
    least: rule.min_duration_ms ? String(rule.min_duration_ms) : '',
    onlyErrors: rule.only_errors ?? false,
  }));
  return { endpoint, rules, incidents, compression, headers: '', removesHeaders: false };
}

/** The document that is saved. Rules without a name are left out. */
export function changeOf(fields: ForwardFields): Change {
  const rules = fields.rules.filter(({ name }) => name.trim() !== '');
  const headers = headersOf(fields.headers);
  return {
    endpoint: fields.endpoint.trim(),
    spans: rules.map(({ name, least, onlyErrors }) => ({
      name: name.trim(),
      min_duration_ms: Number(least.trim() || 0),
      only_errors: onlyErrors,
    })),
    incidents: fields.incidents,
    compression: fields.compression,
    headers: fields.removesHeaders ? {} : (headers ?? undefined),
  };
}

/** The headers of a text with one `name: value` per line. `null` if the text is empty. */
function headersOf(text: string): Record<string, string> | null {
  const lines = linesOf(text).map((line) => [line.slice(0, line.indexOf(':')), line.slice(line.indexOf(':') + 1)]);
  return lines.length > 0 ? Object.fromEntries(lines.map(([name, value]) => [name!.trim(), value!.trim()])) : null;
}

function linesOf(text: string): string[] {
  return text.split('\n').filter((line) => line.trim() !== '');
}

export function endpointFault(endpoint: string): string {
  const text = endpoint.trim();
  return text === '' || /^https?:\/\/[^/\s?#]+[^\s?#]*$/.test(text)
    ? ''
    : 'Start with https:// or http:// and a host, without a query.';
}

export function headersFault(text: string): string {
  const wrong = linesOf(text).find((line) => !/^\s*[\w!#$%&'*+.^`|~-]+\s*:\s*\S/.test(line));
  return wrong === undefined ? '' : 'Write each header as name: value, on a line of its own.';
}

export function ruleFaults({ name, least, onlyErrors }: SpanRuleFields): { name: string; least: string } {
  const isUsed = least.trim() !== '' || onlyErrors;
  const isNumber = /^\d*$/.test(least.trim()) && Number(least) <= DAY_MS;
  return {
    name: name.trim() === '' && isUsed ? 'Enter a name. * matches any characters.' : '',
    least: isNumber ? '' : 'Enter a number of milliseconds, up to one day.',
  };
}
