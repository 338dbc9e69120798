// Sends spans, log records and metrics with OpenTelemetry's exporters for JavaScript, as JSON.

import { createRequire } from 'node:module';

const load = createRequire(`${process.env.CLIENT_MODULES}/`);
const { SpanKind, SpanStatusCode, context, trace } = load('@opentelemetry/api');
const { OTLPLogExporter } = load('@opentelemetry/exporter-logs-otlp-http');
const { OTLPMetricExporter } = load('@opentelemetry/exporter-metrics-otlp-http');
const { OTLPTraceExporter } = load('@opentelemetry/exporter-trace-otlp-http');
const { resourceFromAttributes } = load('@opentelemetry/resources');
const { BatchLogRecordProcessor, LoggerProvider } = load('@opentelemetry/sdk-logs');
const { AggregationTemporality, MeterProvider, PeriodicExportingMetricReader } = load('@opentelemetry/sdk-metrics');
const { BatchSpanProcessor, TracerProvider } = load('@opentelemetry/sdk-trace');

const { SERVER_URL, SERVER_KEY, INSTALL, SESSION } = process.env;
const headers = { Authorization: `Bearer ${SERVER_KEY}` };
const resource = resourceFromAttributes({
  'service.name': 'com.example.shop',
  'service.version': '4.12.0',
  'app.installation.id': INSTALL,
  'session.id': SESSION,
  'os.name': 'android',
  team: 'checkout',
});

const spans = new TracerProvider({
  resource,
  spanProcessors: [new BatchSpanProcessor({ exporter: new OTLPTraceExporter({ url: `${SERVER_URL}/v1/traces`, headers }) })],
});
const tracer = spans.getTracer('shop.cart', '2.0');
const lists = { names: ['a', 'b'], sizes: [1, 2], ratios: [0.5], flags: [true, false] };
const checkout = tracer.startSpan('checkout', { attributes: { items: 3, free: true, price: 9.5, ...lists } });
checkout.addEvent('paid', { by: 'card' });
const inside = trace.setSpan(context.active(), checkout);
const pay = tracer.startSpan('GET /pay', { kind: SpanKind.CLIENT, attributes: { 'http.request.method': 'GET' } }, inside);
pay.recordException(new Error('no money'));
pay.setStatus({ code: SpanStatusCode.ERROR, message: 'no money' });
pay.end();
checkout.setStatus({ code: SpanStatusCode.OK });
checkout.end();
tracer.startSpan('receipt', { links: [{ context: checkout.spanContext() }] }).end();
tracer.startSpan('late', { startTime: Date.now() - 8 * 24 * 3600 * 1000 }).end();
await spans.shutdown();

const exporter = new OTLPMetricExporter({
  url: `${SERVER_URL}/v1/metrics`,
  headers,
  temporalityPreference: AggregationTemporality.DELTA,
});
const metrics = new MeterProvider({ resource, readers: [new PeriodicExportingMetricReader({ exporter })] });
const meter = metrics.getMeter('shop.cart');
meter.createCounter('taps', { unit: '{tap}' }).add(7, { screen: 'cart' });
const loads = meter.createHistogram('load', { unit: 'ms', advice: { explicitBucketBoundaries: [10, 100] } });
for (const value of [4, 6, 50]) loads.record(value);
await metrics.shutdown();

const logs = new LoggerProvider({
  resource,
  processors: [new BatchLogRecordProcessor({ exporter: new OTLPLogExporter({ url: `${SERVER_URL}/v1/logs`, headers }) })],
});
const logger = logs.getLogger('shop');
logger.emit({ severityNumber: 13, severityText: 'WARN', body: 'nearly empty' });
logger.emit({
  severityNumber: 17,
  body: 'no cart',
  attributes: { 'exception.type': 'KeyError', 'exception.message': 'cart', 'exception.stacktrace': 'at a (b.js:1:2)' },
});
await logs.shutdown();
