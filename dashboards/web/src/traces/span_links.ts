// Spans of other traces to which a span of OpenTelemetry is linked.

/** The attribute with all links of a span: `<trace id>-<span id>`, separated by blanks. */
export const LINKS = 'otel.links';

export interface SpanLink {
  readonly trace: string;
  readonly span: string;
}

export function spanLinks(attributes: Readonly<Record<string, string>>): SpanLink[] {
  const found = (attributes[LINKS] ?? '').matchAll(/\b([0-9a-f]{32})-([0-9a-f]{16})\b/g);
  return [...found].map(([, trace, span]) => ({ trace: trace!, span: span! }));
}
