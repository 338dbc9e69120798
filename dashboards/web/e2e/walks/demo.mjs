// The demo: numbers on the pages match the raw tables, and the regressions of the last version are listed first.
import { about, count, rounded } from '../figures.mjs';
import { check } from '../reader.mjs';

export const [LATEST, BEFORE] = ['4.12.0', '4.11.0'];
const DAY_MS = 86_400_000;
const midnight = new Date(Math.floor(Date.now() / DAY_MS) * DAY_MS);
const ago = (days) => new Date(midnight.getTime() - days * DAY_MS);
const second = (date) => date.toISOString().replace('.000Z', 'Z');
const MONTH = `from=${second(ago(30))}&to=${second(midnight)}`;
const WEEK = `from=${second(ago(7))}&to=${second(midnight)}`;
export const VERSIONS = `app_version=${LATEST}&base_app_version=${BEFORE}`;
/** Compares on the same days, so that the raw rows of these days have the same numbers. */
export const PAIR = `${VERSIONS}&compare=same_days`;
const NEW_JANK = 'database on main thread in OrderDao.insert';
export const WEIGHT = 'toUInt64(round(1000 / sample_rate))';
const CLASSED = 'janks INNER JOIN stack_class_current AS class USING (project, stack_hash)';
export const within = (column, days = 30) =>
  `${column} >= fromUnixTimestamp(${ago(days).getTime() / 1000}) AND ${column} < fromUnixTimestamp(${midnight.getTime() / 1000})`;

export const at = (path, range = MONTH) => `${path}${path.includes('?') ? '&' : '?'}${range}`;
export const one = async (state, query) =>
  Object.fromEntries(Object.entries((await state.demo.sql(query))[0]).map(([key, value]) => [key, Number(value)]));

export async function open(reader, path, title) {
  await reader.page.goto(path);
  await reader.page.getByRole('heading', { level: 1, name: title }).waitFor();
  await reader.settled();
}

/** Rules are evaluated every two seconds here. The limit is long because a busy machine is slow. */
const ROUNDS_MS = 120_000;

/** Opens the list of incidents once the alert rule of the demo has fired. */
export async function openFiringIncidents(reader) {
  const firing = reader.page.getByRole('table', { name: 'Firing incidents' }).locator('tbody tr');
  const end = Date.now() + ROUNDS_MS;
  do {
    check(Date.now() < end, 'the alert rule of the demo did not fire');
    await open(reader, at('/incidents'), 'Incidents');
  } while (!(await firing.filter({ hasText: 'ProductActivity' }).first().isVisible()));
}

/** The value of a card. */
export function card({ page }, label) {
  const named = page.locator('.label').getByText(label, { exact: true });
  return page.locator('.card').filter({ has: named }).first().locator('.value').innerText();
}

/** The text of a table cell, by row and column heading. */
export async function cell({ page }, caption, row, heading) {
  const table = page.getByRole('table', { name: caption, exact: true });
  await table.waitFor();
  const headings = (await table.locator('thead th').allInnerTexts()).map((text) => text.replace(/[▾▴]/, '').trim());
  check(headings.includes(heading), `${caption} has no column ${heading}, but ${headings.join(', ')}`);
  const found = table.locator('tbody tr').filter({ hasText: row }).first();
  return found.locator('td').nth(headings.indexOf(heading)).innerText();
}

async function a_person_logs_in_to_the_demo(reader, state) {
  const { page } = reader;
  reader.expect(401);
  await page.goto(at('/'));
  await page.getByLabel('E-mail address').fill(state.demo.email);
  await page.getByLabel('Password').fill(state.demo.password);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
}
a_person_logs_in_to_the_demo.keepsSession = true;

async function the_demo_has_the_work_of_a_team(reader) {
  const { page } = reader;
  const rows = (name) => page.getByRole('table', { name }).locator('tbody tr');
  await open(reader, at('/jank'), 'Jank');
  await rows('Jank groups').filter({ hasText: 'team-orders' }).first().waitFor();
  await open(reader, at('/jank?status=resolved'), 'Jank');
  await rows('Jank groups').filter({ hasText: 'resolved in' }).first().waitFor();
  await open(reader, at('/alert-rules'), 'Alert rules');
  await page.getByRole('link', { name: 'Memory after 15 minutes of use' }).waitFor();
  await openFiringIncidents(reader);
  await open(reader, '/config', 'Remote config');
  await page.getByRole('region', { name: 'Override every-checkout-of-4-12' }).waitFor();
}

async function the_overview_shows_what_got_worse_and_its_numbers_are_right(reader, state) {
  const { page } = reader;
  await open(reader, at('/'), 'Overview');
  const of = (version) => `app_version = '${version}' AND`;
  const frames = await one(
    state,
    `SELECT sum(slow_frames / sample_rate) / sum(frames_drawn / sample_rate) AS slow, sum(duration_ms / sample_rate) / 3600000 AS hours
     FROM frame_windows WHERE ${of(LATEST)} ${within('start')}`,
  );
  const janks = await one(
    state,
    `SELECT sum(1 / sample_rate) AS count FROM ${CLASSED} WHERE NOT class.not_a_cause AND ${of(LATEST)} ${within('start')}`,
  );
  const starts = await one(
    state,
    `SELECT quantileExactWeighted(0.75)(duration_ms, 1) AS p75 FROM app_starts WHERE kind = 'cold' AND ${of(LATEST)} ${within('start')}`,
  );
  rounded(await card(reader, 'Slow frames'), frames.slow, 'slow frames');
  rounded(await card(reader, 'Janks per hour of use'), janks.count / frames.hours, 'janks per hour');
  about(await card(reader, 'Cold start, p75'), starts.p75, 'cold starts');

  const worse = page.getByRole('region', { name: 'What changed' });
  const firstRows = (await worse.locator('tbody tr').allInnerTexts()).slice(0, 4).join('\n');
  check(firstRows.split('\n')[0].includes(NEW_JANK), `what is new is not first: ${firstRows}`);
  for (const name of ['CheckoutActivity', 'checkout'])
    check(firstRows.includes(name), `${name} is not at the top: ${firstRows}`);
  await worse.getByRole('link', { name: 'ProductActivity' }).first().waitFor();
  const checkout = await one(state, spanQuery('checkout', LATEST));
  about(await cell(reader, 'What got worse', /^\s*checkout\s+Span/, 'Now'), checkout.p75 / 1000, 'p75 of checkout');
  await reader.look('demo-overview');

  // Batches are kept for eight days only.
  await open(reader, at('/', WEEK), 'Overview');
  const use = await one(
    state,
    `SELECT uniqExact(session_id) AS sessions, uniqExact(install_id) AS installs FROM batches
     WHERE ${of(LATEST)} ${within('received_at', 7)}`,
  );
  // Small numbers of distinct values are exact. Large ones are estimates within a few percent.
  about(await card(reader, 'Sessions'), use.sessions, 'sessions', 0.03);
  count(await card(reader, 'Installs'), use.installs, 'installs');
}

export const spanQuery = (name, version, more = '') =>
  `SELECT sum(1 / sample_rate) AS count, uniqExact(install_id) AS installs, sum(duration_us / sample_rate) AS sum,
   ${[50, 75, 95].map((p) => `quantileExactWeighted(0.${p})(duration_us, ${WEIGHT}) AS p${p}`).join(', ')}
   FROM spans WHERE name = '${name}' AND app_version = '${version}' ${more} AND ${within('start')}`;

async function the_new_jank_is_first_and_its_group_and_flame_graph_agree(reader, state) {
  const { page } = reader;
  await open(reader, at(`/jank?${PAIR}`), 'Jank');
  const groupOf = (more = '') =>
    `SELECT sum(1 / sample_rate) AS count, uniqExact(install_id) AS installs, sum(duration_ms / sample_rate) AS lost
     FROM ${CLASSED} WHERE class.title = '${NEW_JANK}' AND app_version = '${LATEST}' ${more} AND ${within('start')}`;
  const group = await one(state, groupOf());
  const top = await page.getByRole('table', { name: 'Jank groups' }).locator('tbody tr').first().innerText();
  check(top.includes(NEW_JANK) && top.includes('new'), `what is new is not first: ${top}`);
  count(await cell(reader, 'Jank groups', NEW_JANK, 'Occurrences'), group.count, 'occurrences');
  const installs = await cell(reader, 'Jank groups', NEW_JANK, 'Installs (share)');
  count(installs.split(/\s/)[0], group.installs, 'installs of the group');
  rounded(await cell(reader, 'Jank groups', NEW_JANK, 'Time lost'), group.lost, 'time lost');
  await reader.look('demo-jank');

  await page.getByRole('link', { name: NEW_JANK }).click();
  await page.getByRole('heading', { level: 1, name: NEW_JANK }).waitFor();
  await reader.settled();
  count(await card(reader, 'Occurrences'), group.count, 'occurrences on the page of the group');
  const low = await one(state, groupOf(`AND device_class = 'low'`));
  await page.getByRole('region', { name: 'By device class' }).getByRole('link', { name: 'low' }).click();
  await page.waitForURL(/device_class=low/);
  await reader.settled();
  count(await card(reader, 'Occurrences'), low.count, 'occurrences on slow devices');
  check(low.count < group.count, 'the filter leaves everything');
  await page.reload();
  await reader.settled();
  count(await card(reader, 'Occurrences'), low.count, 'occurrences after a reload');
  await page.goBack();
  await page.waitForURL((url) => !url.search.includes('device_class'));
  await reader.settled();
  count(await card(reader, 'Occurrences'), group.count, 'occurrences after going back');

  await page.getByRole('tab', { name: 'Flame graph' }).click();
  const graph = page.getByRole('application');
  await graph.waitFor();
  await reader.settled();
  const announced = () => page.locator('p[aria-live=polite]').innerText();
  rounded(/all: ([^,]+),/.exec(await announced())[1], group.lost, 'time in the flame graph');
  await graph.focus();
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('ArrowDown');
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Whole graph' }).click();
  await page.getByRole('button', { name: 'Whole graph' }).waitFor({ state: 'detached' });
  await reader.look('demo-jank-group');
}

async function frames_match_the_raw_tables(reader, state) {
  const { page } = reader;
  await open(reader, at(`/frames?${PAIR}`), 'Frames');
  const frames = (more = '') =>
    `SELECT sum(frames_drawn / sample_rate) AS drawn, sum(slow_frames / sample_rate) / drawn AS slow, uniqExact(install_id) AS installs,
     sum(delay_ms / sample_rate) / sum(duration_ms / sample_rate) * 60000 AS delay
     FROM frame_windows WHERE app_version = '${LATEST}' ${more} AND ${within('start')}`;
  const all = await one(state, frames());
  rounded(await card(reader, 'Slow frames'), all.slow, 'slow frames');
  rounded(await card(reader, 'Delay per minute'), all.delay, 'delay per minute');
  count(await card(reader, 'Installs'), all.installs, 'installs');
  const checkout = await one(state, frames(`AND page = 'CheckoutActivity'`));
  const row = await page.getByRole('table', { name: 'Slow frames by page' }).locator('tbody tr').first().innerText();
  check(row.includes('CheckoutActivity'), `the slowest page is not first: ${row}`);
  rounded(await cell(reader, 'Slow frames by page', 'CheckoutActivity', 'Slow frames'), checkout.slow, 'of checkout');
  count(await cell(reader, 'Slow frames by page', 'CheckoutActivity', 'Frames'), checkout.drawn, 'frames of checkout');
  await page.getByRole('link', { name: 'CheckoutActivity' }).first().click();
  await page.waitForURL(/page=CheckoutActivity/);
  await reader.settled();
  rounded(await card(reader, 'Slow frames'), checkout.slow, 'with the filter');
  await reader.look('demo-frames');
}

async function page_loads_match_the_raw_tables(reader, state) {
  await open(reader, at('/page-loads'), 'Page loads');
  const loads = (more = '') =>
    `SELECT sum(1 / sample_rate) AS count, sumIf(1 / sample_rate, outcome = 'completed') / count AS completed,
     quantileExactWeighted(0.75)(total_ms, ${WEIGHT}) AS p75 FROM page_loads WHERE ${within('start')} ${more}`;
  const all = await one(state, loads());
  count(await card(reader, 'Page loads'), all.count, 'page loads');
  rounded(await card(reader, 'Completed'), all.completed, 'completed');
  about(await card(reader, 'Total p75'), all.p75, 'p75');
  const feed = await one(state, loads(`AND page = 'FeedActivity'`));
  count(await cell(reader, 'By page', 'FeedActivity', 'Loads'), feed.count, 'loads of the feed');
  about(await cell(reader, 'By page', 'FeedActivity', 'Total p75'), feed.p75, 'p75 of the feed');
  await open(reader, at('/page-loads?os_name=ios'), 'Page loads');
  count(await card(reader, 'Page loads'), (await one(state, loads(`AND os_name = 'ios'`))).count, 'page loads of iOS');
  await reader.look('demo-page-loads');
}

async function traces_match_the_raw_tables(reader, state) {
  const { page } = reader;
  await open(reader, at('/traces?name=checkout'), 'Traces');
  const [slowest] = await state.demo.sql(
    `SELECT replaceAll(toString(trace_id), '-', '') AS trace, duration_us FROM spans WHERE name = 'checkout' AND ${within('start')} ORDER BY duration_us DESC LIMIT 1`,
  );
  const table = page.getByRole('table').first();
  const shown = await table.locator('tbody tr').first().locator('td').nth(1).innerText();
  rounded(shown, Number(slowest.duration_us) / 1000, 'the slowest checkout');
  await reader.look('demo-traces');
  // There are more roots than one response contains.
  const roots = await one(state, `SELECT count() AS count FROM spans WHERE parent_span_id = 0 AND ${within('start')}`);
  await open(reader, at('/traces?root=true&limit=200'), 'Traces');
  await page.getByRole('button', { name: 'Show more' }).click();
  await page.waitForURL(/limit=1000/);
  await page.getByText(`${Math.min(1000, Number(roots.count))} rows`).waitFor();
  check(Number(roots.count) > 500, `${roots.count} roots fit into one response`);
  check(await page.getByLabel('Roots only').isChecked(), 'roots only is not checked');
  await page.goBack();
  await page.goBack();
  await table.getByRole('link', { name: 'checkout' }).first().click();
  await page.waitForURL(/\/traces\/[0-9a-f]{32}/);
  check(new URL(page.url()).pathname.endsWith(slowest.trace), `another trace: ${page.url()} for ${slowest.trace}`);
  await reader.settled();
  const trace = await one(
    state,
    `SELECT count() AS spans, uniqExact(thread) AS threads FROM spans WHERE trace_id = toUUID('${slowest.trace}')`,
  );
  count(await card(reader, 'Spans'), trace.spans, 'spans of the trace');
  count(await card(reader, 'Threads'), trace.threads, 'threads of the trace');
  rounded(await card(reader, 'Duration'), Number(slowest.duration_us) / 1000, 'length of the trace');
  await page.reload();
  await reader.settled();
  count(await card(reader, 'Spans'), trace.spans, 'spans after a reload');
  await reader.look('demo-trace');
}

async function traffic_matches_the_raw_tables_and_the_top_installs_are_first(reader, state) {
  const { page } = reader;
  await open(reader, at('/traffic'), 'Traffic');
  const all = await one(
    state,
    `SELECT sum(tx_bytes + rx_bytes) AS bytes, sum(requests) AS requests, sum(failed_requests) / requests AS failed,
     uniqExact(install_id) AS installs FROM traffic WHERE ${within(`toDateTime(day, 'UTC')`)}`,
  );
  rounded(await card(reader, 'Bytes'), all.bytes, 'bytes');
  count(await card(reader, 'Requests'), all.requests, 'requests');
  rounded(await card(reader, 'Failed'), all.failed, 'failed requests');
  count(await card(reader, 'Installs'), all.installs, 'installs');
  const day = new Date(midnight.getTime() - 2 * DAY_MS).toISOString().slice(0, 10);
  await open(reader, at(`/traffic?day=${day}`), 'Traffic');
  const top = await state.demo.sql(
    `SELECT toString(install_id) AS install, sum(tx_bytes + rx_bytes) AS bytes FROM traffic WHERE day = '${day}'
     GROUP BY install_id ORDER BY bytes DESC LIMIT 3`,
  );
  const rows = await page.getByRole('region', { name: 'Top 100 installs' }).first().locator('tbody tr').allInnerTexts();
  top.forEach(({ install, bytes }, place) => {
    const [shown, size] = rows[place].split('\t').map((text) => text.trim());
    check(shown === install, `place ${place + 1} is ${shown}, not ${install}`);
    rounded(size, Number(bytes), `bytes of place ${place + 1}`);
  });
  await reader.look('demo-traffic');
}

async function memory_growth_of_a_page_is_shown(reader, state) {
  const { page } = reader;
  await open(reader, at(`/resources?metric=memory_used_bytes&page=ProductActivity&${PAIR}`), 'Resources');
  const memory = await one(
    state,
    `SELECT max(max) AS max, uniqExact(install_id) AS installs, quantileExactWeighted(0.75)(value, ${WEIGHT}) AS p75,
     sum(1 / sample_rate) AS count FROM metrics WHERE name = 'memory_used_bytes' AND page = 'ProductActivity'
     AND app_version = '${LATEST}' AND ${within('time')}`,
  );
  rounded(await card(reader, 'Max'), memory.max, 'most memory');
  count(await card(reader, 'Installs'), memory.installs, 'installs');
  about(await card(reader, 'p75'), memory.p75, 'p75 of memory');
  count(await cell(reader, 'Metrics', 'memory_used_bytes', 'Samples'), memory.count, 'samples');
  const before = await one(
    state,
    `SELECT quantileExactWeighted(0.75)(value, ${WEIGHT}) AS p75 FROM metrics WHERE name = 'memory_used_bytes'
     AND page = 'ProductActivity' AND app_version = '${BEFORE}' AND ${within('time')}`,
  );
  about(await cell(reader, 'Memory used by version', BEFORE, 'p75'), before.p75, 'p75 of the version before');
  await page.getByText(`ProductActivity in ${LATEST}`).waitFor();
  await page.getByRole('group', { name: 'Percentile' }).getByRole('button', { name: 'p95' }).click();
  const overTime = page.getByRole('region', { name: 'Memory used, p95, over time' });
  for (const version of [LATEST, BEFORE])
    await overTime.getByRole('group', { name: 'Lines' }).getByRole('button', { name: version }).waitFor();
  await reader.look('demo-memory');
  await open(reader, at('/app-starts'), 'App starts');
  const starts = await one(
    state,
    `SELECT quantileExactWeighted(0.5)(duration_ms, 1) AS p50, count() AS count FROM app_starts WHERE kind = 'cold' AND ${within('start')}`,
  );
  about(await card(reader, 'Cold start, p50'), starts.p50, 'cold starts');
  count(await cell(reader, 'By kind', 'cold', 'Starts'), starts.count, 'number of cold starts');
  await reader.look('demo-starts');
}

async function hangs_match_the_raw_tables(reader, state) {
  const { page } = reader;
  await open(reader, at('/hangs?app_version=' + LATEST), 'Hangs');
  const hangs = await one(
    state,
    `SELECT sum(1 / sample_rate) AS count, uniqExact(install_id) AS installs FROM ${CLASSED}
     WHERE NOT not_a_cause AND duration_ms >= 500 AND app_version = '${LATEST}' AND ${within('start')}`,
  );
  const use = await one(
    state,
    `SELECT sum(duration_ms / sample_rate) / 3600000 AS hours FROM frame_windows
     WHERE app_version = '${LATEST}' AND ${within('start')}`,
  );
  rounded(await card(reader, 'Hangs'), hangs.count, 'hangs');
  rounded(await card(reader, 'Hangs per hour of use'), hangs.count / use.hours, 'hangs per hour of use');
  count(await cell(reader, 'By version', LATEST, 'Hangs'), hangs.count, 'hangs of the version');
  await reader.look('demo-hangs');
  const strategies = page.getByRole('region', { name: 'By strategy' });
  await strategies.getByRole('link', { name: '1 × over 2 s' }).click();
  await page.waitForURL(/strategy=1x2000ms/);
  await page.getByRole('button', { name: 'Strategy: 1 × over 2 s' }).waitFor();
}

async function every_event_has_an_outcome_on_ingest_health(reader, state) {
  await open(reader, at('/ingest'), 'Ingest health');
  const ends = await one(
    state,
    `SELECT sumIf(count, outcome = 'stored') AS stored, sumIf(count, outcome = 'rejected') AS rejected FROM outcomes
     WHERE ${within('hour')}`,
  );
  count(await card(reader, 'Stored'), ends.stored, 'stored events');
  count(await card(reader, 'Rejected'), ends.rejected, 'rejected events');
  await reader.look('demo-ingest');
  await open(reader, at('/ingest?tab=sdks', WEEK), 'Ingest health');
  const newest = await one(
    state,
    `SELECT count() AS batches, uniqExact(install_id) AS installs FROM batches WHERE sdk_version = '0.4.0'
     AND sdk_name = 'unjank' AND ${within('received_at', 7)}`,
  );
  const table = reader.page.getByRole('table').first();
  const row = table.locator('tbody tr').filter({ hasText: 'unjank' }).filter({ hasText: '0.4.0' });
  // Leaves out the share beside a number.
  const cells = (await row.locator('td').allInnerTexts()).map((text) => text.trim().split(' ')[0]);
  for (const [name, value] of Object.entries(newest)) {
    check(cells.includes(String(value)), `${name}: ${value} is not in ${cells}`);
  }
}

/** Checks that no group marked as new has a row of the previous version. */
async function nothingKnownIsNew(reader, state) {
  const { page } = reader;
  const rows = page.getByRole('table', { name: 'Jank groups' }).locator('tbody tr');
  await rows.first().waitFor();
  await reader.settled();
  const isNew = rows.filter({ has: page.locator('.badge', { hasText: /^new$/ }) });
  const titles = await isNew.locator('a').allInnerTexts();
  for (const title of titles.filter((text) => text.includes(' in '))) {
    const known = await one(
      state,
      `SELECT count() AS janks FROM ${CLASSED} WHERE class.title = '${title}' AND app_version = '${BEFORE}'`,
    );
    check(known.janks === 0, `${title} is marked as new, but ${BEFORE} has ${known.janks} of it`);
  }
  return titles;
}

async function versions_are_compared_at_the_same_age_and_only_significant_changes_have_a_colour(reader, state) {
  const { page } = reader;
  await open(reader, at(`/jank?${VERSIONS}`, WEEK), 'Jank');
  await page.getByText(/at the same age: \d+ \w+ – \d+ \w+( \(UTC\))?, base \d+ \w+/).waitFor();
  const found = await nothingKnownIsNew(reader, state);
  check(found.includes(NEW_JANK), `${NEW_JANK} is not marked as new, only ${found}`);
  await page.getByRole('link', { name: 'Compare on the same days' }).click();
  await page.waitForURL(/compare=same_days/);
  await page.getByText(/on the same days: /).waitFor();
  await nothingKnownIsNew(reader, state);
  await page.reload();
  await page.getByRole('link', { name: 'Compare at the same age' }).waitFor();
  await open(reader, at(`/frames?${VERSIONS}`, WEEK), 'Frames');
  const coloured = page.locator('[data-verdict=worse], [data-verdict=better]');
  await coloured.first().waitFor();
  for (const text of await coloured.allInnerTexts()) {
    const percent = Number(/([\d.,]+) %/.exec(text)?.[1].replaceAll(',', ''));
    check(percent >= 5, `a change of ${text} has a colour`);
  }
}

/** The first walk logs in for all others. */
export const walks = [
  a_person_logs_in_to_the_demo,
  the_demo_has_the_work_of_a_team,
  the_overview_shows_what_got_worse_and_its_numbers_are_right,
  the_new_jank_is_first_and_its_group_and_flame_graph_agree,
  frames_match_the_raw_tables,
  page_loads_match_the_raw_tables,
  traces_match_the_raw_tables,
  traffic_matches_the_raw_tables_and_the_top_installs_are_first,
  memory_growth_of_a_page_is_shown,
  hangs_match_the_raw_tables,
  every_event_has_an_outcome_on_ingest_health,
  versions_are_compared_at_the_same_age_and_only_significant_changes_have_a_colour,
];
