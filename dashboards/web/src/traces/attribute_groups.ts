// Groups the attributes of a span. OpenTelemetry spans also have attributes of their resource and scope. Pure.

import { LINKS, spanLinks, type SpanLink } from './span_links';

type Attribute = readonly [name: string, value: string];

export interface AttributeGroups {
  /** The attributes of the span itself. */
  readonly own: Attribute[];
  /** The attributes of the app, the device or the machine, recognised by their names in the semantic conventions. */
  readonly resource: Attribute[];
  /** The library that made the span, with its version. */
  readonly scope: string;
  /** The other attributes of the library. */
  readonly ofScope: Attribute[];
  /** `client`, `server`, `producer` or `consumer`. */
  readonly kind: string;
  /** Why the span failed. */
  readonly reason: string;
  readonly links: SpanLink[];
}

const RESOURCE =
  /^(service|telemetry|os|device|host|process|container|k8s|cloud|deployment|browser|app|android|ios|faas|webengine|user_agent)\./;
const OF_EVENT = /^app\.(screen|widget|jank)\./;
const KIND = 'span.kind';
const REASON = 'otel.status_description';
const OF_SCOPE = 'otel.scope.';
const SCOPE = ['otel.scope.name', 'otel.scope.version'];

export function attributeGroups(attributes: Readonly<Record<string, string>>): AttributeGroups {
  const links = spanLinks(attributes);
  const shown = [KIND, REASON, ...SCOPE, ...(links.length > 0 ? [LINKS] : [])];
  const rest = Object.entries(attributes).filter(([name]) => !shown.includes(name));
  const isOfResource = ([name]: Attribute) => RESOURCE.test(name) && !OF_EVENT.test(name);
  const isOfScope = ([name]: Attribute) => name.startsWith(OF_SCOPE);
  return {
    own: rest.filter((one) => !isOfResource(one) && !isOfScope(one)),
    resource: rest.filter(isOfResource),
    scope: SCOPE.map((name) => attributes[name] ?? '')
      .filter(Boolean)
      .join(' '),
    ofScope: rest.filter(isOfScope),
    kind: attributes[KIND] ?? '',
    reason: attributes[REASON] ?? '',
    links,
  };
}
