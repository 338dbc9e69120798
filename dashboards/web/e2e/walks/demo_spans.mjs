// Spans of the demo: numbers, the flame graph and attributes match the raw tables.
import { about, count, rounded } from '../figures.mjs';
import { check } from '../reader.mjs';
import { BEFORE, LATEST, PAIR, WEIGHT, at, card, cell, one, open, spanQuery, within } from './demo.mjs';

async function spans_match_the_raw_tables_and_are_searched_on_the_server(reader, state) {
  const { page } = reader;
  await open(reader, at(`/spans?${PAIR}`), 'Spans');
  const checkout = await one(state, spanQuery('checkout', LATEST));
  const before = await one(state, spanQuery('checkout', BEFORE));
  const top = await page.getByRole('table', { name: 'Spans' }).locator('tbody tr').first().innerText();
  check(top.startsWith('checkout'), `checkout got worst, but the first row is ${top}`);
  count(await cell(reader, 'Spans', /^\s*checkout/, 'Count'), checkout.count, 'count of checkout');
  about(await cell(reader, 'Spans', /^\s*checkout/, 'p95'), checkout.p95 / 1000, 'p95 of checkout');
  const methods = await one(
    state,
    `SELECT name, sum(1 / sample_rate) AS count FROM spans WHERE name LIKE '%FeedAdapter.onBindViewHolder%' AND app_version = '${LATEST}'
     AND ${within('start')} GROUP BY name`,
  );
  await page.getByRole('searchbox', { name: 'Find a name' }).fill('onbindviewholder');
  await page.waitForURL(/find=onbindviewholder/);
  await page.getByRole('link', { name: 'checkout', exact: true }).waitFor({ state: 'detached' });
  await reader.settled();
  count(await cell(reader, 'Spans', 'onBindViewHolder', 'Count'), methods.count, 'count of what is sampled');
  await reader.look('demo-spans');

  await open(reader, at(`/spans?name=checkout&${PAIR}`), 'checkout');
  count(await card(reader, 'Count'), checkout.count, 'count on the page of the span');
  count(await card(reader, 'Installs'), checkout.installs, 'installs of the span');
  rounded(await card(reader, 'Total time'), checkout.sum / 1000, 'total time');
  for (const p of ['p50', 'p75', 'p95']) about(await card(reader, p), checkout[p] / 1000, p);
  about(await cell(reader, 'By version', BEFORE, 'p75'), before.p75 / 1000, 'p75 of the version before');
  const inside = await tracedSpans(state, LATEST);
  const total = await cell(reader, 'Inside the span', 'time outside the other rows', 'Total per traced span');
  rounded(total, inside.mean / 1000, 'time of a traced checkout');
  count(
    await cell(reader, 'Inside the span', 'time outside the other rows', 'Traced spans'),
    inside.traced,
    'traced spans',
  );
  await page.getByRole('button', { name: 'Show flame graph' }).click();
  await page.waitForURL(/flame=shown/);
  const graph = page.getByRole('application', { name: /^Flame graph, compared with/ });
  await graph.waitFor();
  await reader.settled();
  const announced = page.locator('p[aria-live=polite]').filter({ hasText: 'of all' });
  // The time of spans that few traces recorded is an estimate.
  const mean = checkout.sum / checkout.count / 1000;
  about(/all: ([^,]+),/.exec(await announced.innerText())[1], mean, 'mean time in the flame graph', 0.5);
  await graph.focus();
  await page.keyboard.press('ArrowDown');
  const outermost = await announced.innerText();
  check(/^checkout: .*, 100 % of all/.test(outermost), `the outermost frame is not the span: ${outermost}`);
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Folded stacks' }).click(),
  ]);
  check(file.suggestedFilename() === 'spans.folded', file.suggestedFilename());
  await reader.look('demo-span');

  await open(reader, at(`/spans?name=checkout&app_version=${LATEST}`), 'checkout');
  const last = await one(
    state,
    `SELECT duration_us FROM spans WHERE name = 'checkout' AND app_version = '${LATEST}' AND ${within('start')}
     ORDER BY start DESC, span_id DESC, trace_id DESC LIMIT 1`,
  );
  rounded(await card(reader, 'Last'), last.duration_us / 1000, 'duration of the last checkout');
}

async function attributes_of_spans_filter_and_break_down(reader, state) {
  const { page } = reader;
  const having = (attribute, value) =>
    one(
      state,
      `SELECT sum(1 / sample_rate) AS count, quantileExactWeighted(0.75)(duration_us, ${WEIGHT}) AS p75 FROM spans
       WHERE name = 'checkout' AND attributes['${attribute}'] = '${value}' AND ${within('start')}`,
    );
  const tapped = await having('experiment', 'one_tap');
  await open(reader, at('/spans?name=checkout&attribute=experiment'), 'checkout');
  count(await cell(reader, 'By attribute', 'one_tap', 'Count'), tapped.count, 'count of an attribute');
  about(await cell(reader, 'By attribute', 'one_tap', 'p75'), tapped.p75 / 1000, 'p75 of an attribute');
  await page.getByRole('table', { name: 'By attribute' }).getByRole('link', { name: 'one_tap' }).click();
  await page.waitForURL(/attribute\.experiment=one_tap/);
  await page.getByText('With the filter experiment, results come from raw events').waitFor();
  await page.getByText('Janks during these spans are not shown').waitFor();
  await reader.settled();
  count(await card(reader, 'Count'), tapped.count, 'count with an attribute');
  await reader.look('demo-attribute');
  await page.getByRole('button', { name: 'Remove the filter experiment' }).click();
  await page.waitForURL((url) => !url.searchParams.has('attribute.experiment'));

  // The filter bar offers the attributes of the spans that the page shows, and their values.
  await page.getByRole('button', { name: 'Add filter' }).click();
  await page.getByRole('option', { name: /^items/ }).click();
  await page.getByRole('listbox').getByRole('option').first().click();
  await page.waitForURL(/attribute\.items=\d+/);
  await page.keyboard.press('Escape');
  await reader.settled();
  const items = await having('items', new URL(page.url()).searchParams.get('attribute.items'));
  count(await card(reader, 'Count'), items.count, 'count with an attribute of the filter bar');

  // The traces of these spans have the attribute. Pages of other data have none.
  await page.getByRole('link', { name: 'Search traces' }).click();
  await page.waitForURL(/\/traces\?.*attribute\.items=\d+/);
  await page.getByRole('navigation').getByRole('link', { name: 'Jank' }).click();
  await page.waitForURL((url) => url.pathname === '/jank' && !url.search.includes('attribute'));
}

/** The traced spans among the latest 1,000, which are the ones that the page reads. */
function tracedSpans(state, version) {
  return one(
    state,
    `SELECT avg(duration_us) AS mean, count() AS traced FROM (SELECT duration_us, trace_id FROM spans WHERE name = 'checkout'
     AND app_version = '${version}' AND ${within('start')} ORDER BY start DESC, span_id DESC, trace_id DESC LIMIT 1000)
     WHERE trace_id IN (SELECT trace_id FROM spans WHERE sample_rate < 1)`,
  );
}

export const walks = [
  spans_match_the_raw_tables_and_are_searched_on_the_server,
  attributes_of_spans_filter_and_break_down,
];
