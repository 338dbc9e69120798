import { expect, test } from 'vitest';
import { attributeGroups } from '../src/traces/attribute_groups';

test('attributes of OpenTelemetry are grouped by what they describe', () => {
  const groups = attributeGroups({
    'app.widget.name': 'pay',
    'http.request.method': 'POST',
    'k8s.pod.name': 'cart-1',
    'otel.links': '0102030405060708090a0b0c0d0e0f10-0102030405060708',
    'otel.scope.name': 'shop.cart',
    'otel.scope.schema_url': 'https://opentelemetry.io/schemas/1.44.0',
    'otel.scope.tier': 'gold',
    'otel.scope.version': '2',
    'otel.status_description': 'timeout',
    'service.namespace': 'shop',
    'span.kind': 'client',
    team: 'checkout',
  });
  expect(groups).toEqual({
    own: [
      ['app.widget.name', 'pay'],
      ['http.request.method', 'POST'],
      ['team', 'checkout'],
    ],
    resource: [
      ['k8s.pod.name', 'cart-1'],
      ['service.namespace', 'shop'],
    ],
    scope: 'shop.cart 2',
    ofScope: [
      ['otel.scope.schema_url', 'https://opentelemetry.io/schemas/1.44.0'],
      ['otel.scope.tier', 'gold'],
    ],
    kind: 'client',
    reason: 'timeout',
    links: [{ trace: '0102030405060708090a0b0c0d0e0f10', span: '0102030405060708' }],
  });
});

test('links that cannot be read stay an attribute', () => {
  const groups = attributeGroups({ 'otel.links': 'none' });
  expect(groups.own).toEqual([['otel.links', 'none']]);
  expect(groups.links).toEqual([]);
});
