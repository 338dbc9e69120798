// The pages with details of device data: spans, traces, traffic, resources and ingest health.
import { check } from '../reader.mjs';
import { PROJECT } from '../server.mjs';
import { SLOW_SPAN, batches } from '../shop_batches.mjs';

const at = (path) => `${path}${path.includes('?') ? '&' : '?'}project=${PROJECT}`;

/** Makes an ingest key that the server accepts. */
export async function ingestKey(page, project = PROJECT) {
  const made = await page.request.post(`/api/v1/projects/${project}/keys`, { data: { name: 'Devices of a walk' } });
  check(made.status() === 201, `no key: ${made.status()} ${await made.text()}`);
  const { key } = await made.json();
  const headers = { authorization: `Bearer ${key}` };
  // The response to the creation of a key may arrive before the server accepts the key.
  for (let tries = 0; tries < 50 && !(await page.request.get('/v1/config', { headers })).ok(); tries += 1) {
    await page.waitForTimeout(100);
  }
  return key;
}

async function devices_send_events_that_are_stored(reader) {
  const { page } = reader;
  const headers = { authorization: `Bearer ${await ingestKey(page)}` };
  for (const data of batches(Date.now())) {
    const answer = await page.request.post('/v1/ingest', { headers, data });
    check(answer.status() === 202, `a batch was rejected: ${answer.status()} ${await answer.text()}`);
    const { rejected } = await answer.json();
    check(rejected.length === 1 && rejected[0].code === 'duration_out_of_range', JSON.stringify(rejected));
  }
  // Waits for the events and for the counts of their outcomes.
  const wanted = ['spans?by=name', 'traffic', 'metrics', 'outcomes?outcome=rejected', 'sdk_drops'];
  for (let tries = 0; tries < 120; tries += 1) {
    const answers = await Promise.all(
      wanted.map(async (one) => {
        const answer = await page.request.get(`/api/v1/projects/${PROJECT}/query/${one}`);
        return answer.ok() ? (await answer.json()).rows : [];
      }),
    );
    if (answers.every((rows) => rows.some(({ values }) => values[0] > 0))) return;
    await page.waitForTimeout(500);
  }
  throw new Error('queries do not return the sent events');
}

async function a_span_from_the_list_to_where_its_time_went(reader) {
  const { page } = reader;
  await page.goto(at('/spans?device_model=Pixel+8'));
  await page.getByRole('link', { name: SLOW_SPAN, exact: true }).waitFor();
  await reader.look('spans-list');
  await page.getByRole('button', { name: 'All kinds' }).click();
  await page.getByRole('option', { name: 'method' }).click();
  await page.waitForURL(/kind=method/);
  await page.getByRole('link', { name: 'Cart.pay(Card)' }).waitFor();
  await page.getByRole('link', { name: SLOW_SPAN, exact: true }).waitFor({ state: 'detached' });
  await page.goBack();
  await page.getByRole('link', { name: SLOW_SPAN, exact: true }).click();
  await page.waitForURL(/name=checkout/);
  check(page.url().includes('device_model=Pixel+8'), `the filter is gone: ${page.url()}`);
  await page.getByRole('heading', { level: 1, name: SLOW_SPAN }).waitFor();
  const inside = page.getByRole('region', { name: 'Inside the span' }).first();
  await inside.getByText('Cart.total(List)').waitFor();
  await reader.look('span');
  await page.getByRole('button', { name: 'Packages' }).click();
  await inside.getByText('com.example.shop', { exact: true }).waitFor();
  await page.goBack();
  await page.getByRole('heading', { level: 1, name: 'Spans' }).waitFor();
  for (const [tab, text] of [
    ['Construction', 'PayService'],
    ['By package', 'com.example.shop'],
    ['Recompositions', 'CartState.items'],
  ]) {
    await page.getByRole('tab', { name: tab }).click();
    await page.getByText(text).first().waitFor();
    await reader.look(`spans-${tab.toLowerCase().replace(' ', '-')}`);
  }
}

async function a_trace_is_found_walked_and_saved(reader) {
  const { page } = reader;
  await page.goto(at('/traces'));
  await page.getByLabel('Span name contains').fill(SLOW_SPAN);
  await page.getByLabel('Min. duration (ms)').fill('5000');
  await page.getByRole('button', { name: 'Search', exact: true }).click();
  await page.getByText('No spans match the choices on this page').waitFor();
  await page.getByLabel('Min. duration (ms)').fill('500');
  await page.getByRole('button', { name: 'Search', exact: true }).click();
  await page.waitForURL(/(find=checkout.*at_least_ms=500|at_least_ms=500.*find=checkout)/);
  await page.getByRole('link', { name: SLOW_SPAN, exact: true }).first().waitFor();
  await reader.look('traces-found');
  await page.getByRole('link', { name: SLOW_SPAN, exact: true }).first().click();
  await page.waitForURL(/\/traces\/[0-9a-f]{32}/);
  const waterfall = page.getByRole('application');
  await waterfall.focus();
  await page.keyboard.press('ArrowDown');
  await page.getByRole('region', { name: 'Chosen span' }).getByRole('heading', { name: 'Cart.total(List)' }).waitFor();
  await page.getByText('com.example.shop.Cart.pay in Cart.kt:42').waitFor();
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Whole trace' }).click();
  await reader.look('trace');
  await page.reload();
  await page.getByText('com.example.shop.Cart.pay in Cart.kt:42').waitFor();
  await page.getByRole('button', { name: 'Show as table' }).click();
  await page.getByRole('button', { name: '/checkout/pay' }).click();
  await page.getByRole('region', { name: 'Chosen span' }).getByText('OkHttp').waitFor();
  const file = page.waitForEvent('download');
  await page.getByRole('button', { name: 'Perfetto file' }).click();
  check((await file).suggestedFilename().endsWith('.trace.json'), 'no file');
  await page.goBack();
  await page.getByRole('heading', { level: 1, name: 'Traces' }).waitFor();
}

async function a_trace_leads_to_the_system_with_the_spans_of_the_servers(reader) {
  const { page } = reader;
  await page.goto(at('/data?tab=opentelemetry'));
  const form = page.getByRole('form', { name: 'Traces in another system' });
  const address = form.getByLabel('Address of a trace');
  await address.fill('javascript:alert({trace_id})');
  await form.getByText('Start with https:// or http://').waitFor();
  await form.getByRole('button', { name: 'Save' }).click();
  check(await address.evaluate((field) => field === document.activeElement), 'the field with the fault has no focus');
  await page.getByRole('button', { name: 'Jaeger' }).click();
  await page.getByLabel('Name of the system').fill('Jaeger');
  await reader.look('trace-links');
  await form.getByRole('button', { name: 'Save' }).click();
  await page.getByText(/^Saved\./).waitFor();
  await form.getByText('not saved').waitFor({ state: 'detached' });
  await page.goto(at(`/traces?find=${SLOW_SPAN}`));
  await page.getByRole('link', { name: SLOW_SPAN, exact: true }).first().click();
  await page.waitForURL(/\/traces\/[0-9a-f]{32}/);
  // The servers take the saved template within a second.
  const link = page.getByRole('link', { name: 'Open in Jaeger' });
  for (let tries = 0; tries < 20 && !(await link.isVisible()); tries += 1) {
    await page.waitForTimeout(250);
    await page.reload();
    await page.getByRole('application').waitFor();
  }
  const trace = /traces\/([0-9a-f]{32})/.exec(page.url())[1];
  const isTo = (to) => to.startsWith(`https://jaeger.example.com/trace/${trace}?uiFind=`);
  check(isTo(await link.getAttribute('href')), `the trace leads to ${await link.getAttribute('href')}`);
  await page.getByRole('button', { name: 'Show as table' }).click();
  await page.getByRole('button', { name: '/checkout/pay' }).click();
  const request = page.getByRole('link', { name: 'Open request in Jaeger' });
  const to = await request.getAttribute('href');
  check(isTo(to) && to.endsWith(new URL(page.url()).searchParams.get('span')), `the request leads to ${to}`);
  check((await request.getAttribute('rel')).includes('noopener'), 'the other page gets a handle of this one');
  check((await request.getAttribute('target')) === '_blank', 'the other page replaces this one');
  await reader.look('trace-with-links');
}

/** A trace of OpenTelemetry with spans of an app and of a service. */
function traceOfTwoServices(now) {
  const traceId = '5b8aa5a2d2c872e8321cf37308d69df2';
  const text = (key, value) => ({ key, value: { stringValue: value } });
  const nanos = (ms) => String((now + ms) * 1e6);
  const span = (spanId, name, from, to, more) => ({
    ...{ traceId, spanId, name, kind: 1, startTimeUnixNano: nanos(from), endTimeUnixNano: nanos(to) },
    ...more,
  });
  const of = (resource, scope, spans) => ({
    resource: { attributes: Object.entries(resource).map(([key, value]) => text(key, value)) },
    scopeSpans: [{ scope, spans }],
  });
  const app = { 'service.name': 'com.example.shop', 'service.version': '4.12.0' };
  const service = { 'service.name': 'payments', 'service.version': '9.1.0', 'k8s.pod.name': 'payments-7d9f' };
  const spring = { name: 'spring', version: '6.0', attributes: [text('tier', 'gold')] };
  const handled = {
    ...{ parentSpanId: '0000000000000001', kind: 2, attributes: [text('http.route', '/v1/pay')] },
    status: { code: 2, message: 'the acquirer did not respond' },
    links: [{ traceId: '0102030405060708090a0b0c0d0e0f10', spanId: '0102030405060708' }],
  };
  const resourceSpans = [
    of(app, { name: 'shop.cart' }, [span('0000000000000001', 'pay', -9000, -8000)]),
    of(service, spring, [span('0000000000000002', 'POST /v1/pay', -8900, -8100, handled)]),
  ];
  return { traceId, body: { resourceSpans } };
}

async function a_trace_of_opentelemetry_names_its_services(reader) {
  const { page } = reader;
  const made = await page.request.post(`/api/v1/projects/${PROJECT}/keys`, { data: { name: 'Collector of a walk' } });
  const headers = { authorization: `Bearer ${(await made.json()).key}` };
  const { traceId, body } = traceOfTwoServices(Date.now());
  for (let tries = 0; tries < 50; tries += 1) {
    if ((await page.request.post('/v1/traces', { headers, data: body })).ok()) break;
    await page.waitForTimeout(100);
  }
  const stored = () => page.request.get(`/api/v1/projects/${PROJECT}/traces/${traceId}`);
  for (let tries = 0; tries < 60 && !(await stored()).ok(); tries += 1) await page.waitForTimeout(250);
  await page.goto(at(`/traces/${traceId}?span=0000000000000002`));
  const chosen = page.getByRole('region', { name: 'Chosen span' });
  for (const text of ['the acquirer did not respond', 'payments 9.1.0', 'spring 6.0', 'server', 'payments-7d9f']) {
    await chosen.getByText(text, { exact: true }).waitFor();
  }
  const headings = ['Linked spans', 'Attributes', 'Library', 'Resource'];
  for (const name of headings) await chosen.getByRole('heading', { name }).waitFor();
  await reader.look('trace-of-services');
  await page.getByRole('button', { name: 'Show as table' }).click();
  await page.getByRole('cell', { name: 'com.example.shop' }).waitFor();
  await page.setViewportSize({ width: 400, height: 800 });
  await reader.look('trace-of-services-narrow');
  await reader.overflow('trace-of-services-narrow');
}

async function what_is_forwarded_is_chosen_and_counted(reader) {
  const { page } = reader;
  reader.expect(422);
  await page.goto(at('/data?tab=opentelemetry'));
  const form = page.getByRole('form', { name: 'Forward to another collector' });
  const address = form.getByLabel('Address of the collector');
  await address.fill('collector');
  await form.getByText('Start with https:// or http://').waitFor();
  await address.fill('http://127.0.0.1:4318');
  await form.getByLabel('Headers', { exact: true }).fill('authorization: Bearer top-secret');
  await form.getByRole('button', { name: 'Add a rule' }).click();
  await form.getByLabel('Span name').fill('checkout*');
  await form.getByLabel('Min. duration (ms)').fill('500');
  await form.getByLabel('Incidents, when they begin').check();
  await form.getByLabel('Compression').selectOption('None');
  await form.getByRole('button', { name: 'Save' }).click();
  await form.getByText('not a public address').waitFor();
  await reader.look('forward-fault');
  await address.fill('https://collector.example.com');
  await form.getByRole('button', { name: 'Save' }).click();
  await page.getByText(/^Saved\./).waitFor();
  await form.getByText('Saved: authorization').waitFor();
  check((await form.getByLabel('Headers', { exact: true }).inputValue()) === '', 'the headers are still shown');
  for (const outcome of ['Dropped', 'Rejected']) await form.getByText(outcome).waitFor();
  await reader.look('forward');
  await page.reload();
  check((await form.getByLabel('Min. duration (ms)').inputValue()) === '500', 'the rule is gone');
  check((await form.getByLabel('Compression').inputValue()) === 'none', 'the compression is gone');
  await address.fill('');
  await form.getByRole('button', { name: 'Save' }).click();
  await page.getByText(/^Saved\./).waitFor();
}

async function the_installs_with_the_most_traffic_are_listed_with_its_purpose(reader) {
  const { page } = reader;
  await page.goto(at('/traffic?page=CartActivity'));
  await page.getByText('this filter is ignored here').waitFor();
  const top = page.getByRole('region', { name: 'Top 100 installs' }).first();
  await top.getByRole('button', { name: /000000000006/ }).click();
  await page.waitForURL(/install=/);
  await page.getByRole('list', { name: 'By source' }).getByText('cdn').waitFor();
  await reader.look('traffic-install');
  await page.getByLabel('Split by').selectOption('network');
  await page.getByRole('list', { name: 'Parts' }).getByText('cellular_4g').waitFor();
  await page.goBack();
  await page.goBack();
  await page.getByRole('list', { name: 'By source' }).waitFor({ state: 'detached' });
}

async function from_a_user_with_much_traffic_to_requests_traces_and_the_install(reader) {
  const { page } = reader;
  await page.goto(at('/traffic'));
  await page.getByLabel('Rank by').selectOption('users');
  const top = page.getByRole('region', { name: 'Top 100 users' }).first();
  await top.getByText('(installs without a user)').waitFor();
  await top.getByRole('button', { name: 'user-both' }).click();
  await page.waitForURL(/user=user-both/);
  const requests = page.getByRole('region', { name: 'Requests by host and path' }).first();
  await requests.getByText('api.example.com').waitFor();
  await requests.getByRole('button', { name: '/checkout/pay' }).click();
  const traces = page.getByRole('region', { name: 'Traces with api.example.com/checkout/pay' }).first();
  await traces.getByRole('link', { name: 'POST /checkout/pay' }).first().waitFor();
  await reader.look('traffic-user');
  await traces.getByRole('link', { name: 'POST /checkout/pay' }).first().click();
  const chosen = page.getByRole('region', { name: 'Chosen span' });
  const report = await chosen.getByRole('link', { name: 'Session report' }).getAttribute('href');
  const answer = await page.request.get(report);
  check(answer.ok() && (await answer.text()).includes('Pixel 8'), `no report: ${answer.status()}`);
  await chosen.getByRole('link', { name: 'Install page' }).click();
  await page.waitForURL(/\/installs\//);
  await page.getByRole('region', { name: 'Numbers', exact: true }).getByText('Traffic per install').waitFor();
  await page.getByText('user-both').waitFor();
  await reader.look('install');
}

async function growing_memory_is_shown(reader) {
  const { page } = reader;
  await page.goto(at('/resources'));
  await page.waitForURL(/metric=memory_used_bytes/);
  await page.getByText('Grows the longer the app runs').waitFor();
  await reader.look('resources-metric');
  // App starts were a tab of this page.
  await page.goto(at('/resources?tab=starts'));
  await page.waitForURL(/\/app-starts\?/);
}

async function outcomes_of_events_are_counted(reader) {
  const { page } = reader;
  await page.goto(at('/ingest'));
  await page.getByText('A duration below zero or over a day.').waitFor();
  await page.getByText('More events arrived at once than the queue in memory holds.').waitFor();
  await reader.look('ingest-reasons');
  await page.getByRole('tab', { name: 'Clocks and lateness' }).click();
  await page.getByText('Pixel 8').first().waitFor();
  await reader.look('ingest-clocks');
  await page.getByRole('tab', { name: 'SDKs and their cost' }).click();
  await page.getByRole('cell', { name: '0.1.0' }).first().waitFor();
  await reader.look('ingest-sdks');
}

async function details_on_a_narrow_dark_screen(reader) {
  const { page } = reader;
  const pages = {
    span: `/spans?name=${SLOW_SPAN}`,
    compared: '/spans?app_version=4.12.0&base_app_version=4.11.0',
    trace: '/traces/000000000000000000000000000003e8',
    traffic: '/traffic',
    install: '/installs/5c0c7e0e-6c6b-4a3e-8a0e-000000000002',
    metric: '/resources?metric=memory_used_bytes',
    starts: '/app-starts',
    ingest: '/ingest',
  };
  for (const [name, path] of Object.entries(pages)) {
    await page.goto(at(path));
    await page.getByRole('table').or(page.getByRole('application')).first().waitFor();
    await reader.look(`${name}-narrow-dark`);
    await reader.overflow(`${name}-narrow-dark`);
  }
}
details_on_a_narrow_dark_screen.options = { viewport: { width: 400, height: 800 }, colorScheme: 'dark' };

/** The first walk sends the data of all others. */
export const walks = [
  devices_send_events_that_are_stored,
  a_span_from_the_list_to_where_its_time_went,
  a_trace_is_found_walked_and_saved,
  a_trace_leads_to_the_system_with_the_spans_of_the_servers,
  what_is_forwarded_is_chosen_and_counted,
  a_trace_of_opentelemetry_names_its_services,
  the_installs_with_the_most_traffic_are_listed_with_its_purpose,
  from_a_user_with_much_traffic_to_requests_traces_and_the_install,
  growing_memory_is_shown,
  outcomes_of_events_are_counted,
  details_on_a_narrow_dark_screen,
];
