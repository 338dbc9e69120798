// A web page that reports with OpenTelemetry's SDK for browsers. `window.settings` has the address and the key.

import { context, SpanKind, SpanStatusCode, trace } from '@opentelemetry/api';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { BatchSpanProcessor, WebTracerProvider } from '@opentelemetry/sdk-trace-web';

/** Returns an id that is made once and kept in `localStorage` or `sessionStorage`. */
function kept(storage, name) {
  const made = crypto.randomUUID();
  try {
    const id = window[storage].getItem(name) ?? made;
    window[storage].setItem(name, id);
    return id;
  } catch {
    // The browser keeps nothing, so this page is an install of its own.
    return made;
  }
}

const { url, key } = window.settings;
const exporter = new OTLPTraceExporter({ url: `${url}/v1/traces`, headers: { Authorization: `Bearer ${key}` } });
const provider = new WebTracerProvider({
  resource: resourceFromAttributes({
    'service.name': 'com.example.shop.web',
    'service.version': '4.12.0',
    'app.installation.id': kept('localStorage', 'app.installation.id'),
    'session.id': kept('sessionStorage', 'session.id'),
    'browser.platform': 'Linux',
    'browser.language': 'de-DE',
  }),
  spanProcessors: [new BatchSpanProcessor(exporter)],
});
provider.register();

const tracer = trace.getTracer('shop.web', '1.0');
const lists = { names: ['a', 'ä'], sizes: [1, 2], ratios: [0.5], flags: [true, false] };
const checkout = tracer.startSpan('web checkout', { attributes: { items: 3, free: true, price: 9.5, ...lists } });
checkout.addEvent('paid', { by: 'card' });
const inside = trace.setSpan(context.active(), checkout);
const attributes = { 'http.request.method': 'GET', 'url.full': 'https://api.example.com/pay' };
const pay = tracer.startSpan('GET', { kind: SpanKind.CLIENT, attributes }, inside);
pay.recordException(new Error('no money'));
pay.setStatus({ code: SpanStatusCode.ERROR, message: 'no money' });
pay.end();
checkout.setStatus({ code: SpanStatusCode.OK });
checkout.end();

window.flush = () => provider.forceFlush();
// Nothing sends this span before the page is left.
window.last = () => tracer.startSpan('web farewell').end();
