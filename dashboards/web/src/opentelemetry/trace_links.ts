// The form of the links from traces to another system. Pure.

import type { Schemas } from '../api/client';
import type { Placeholder } from '../format/link_template';

export type TraceLinks = Schemas['TraceLinks'];

export const PLACEHOLDERS: readonly Placeholder[] = [
  { name: '{trace_id}', meaning: 'trace id, 32 hex digits' },
  { name: '{span_id}', meaning: 'span id, 16 hex digits' },
  { name: '{start_ms}', meaning: 'start of the span, in milliseconds since 1970' },
  { name: '{end_ms}', meaning: 'end of the span, in milliseconds since 1970' },
];

const PANES =
  '%7B%22a%22:%7B%22datasource%22:%22tempo%22,%22queries%22:%5B%7B%22refId%22:%22A%22,%22queryType%22:%22traceql%22,%22query%22:%22{trace_id}%22%7D%5D,%22range%22:%7B%22from%22:%22{start_ms}%22,%22to%22:%22{end_ms}%22%7D%7D%7D';

export const EXAMPLES = [
  { name: 'Jaeger', template: 'https://jaeger.example.com/trace/{trace_id}?uiFind={span_id}' },
  { name: 'Tempo', template: `https://grafana.example.com/explore?schemaVersion=1&panes=${PANES}` },
];

/** The document that is saved, without blanks around its texts. */
export function documentOf({ name, template }: TraceLinks): TraceLinks {
  return { name: name.trim(), template: template.trim() };
}
