// Alerting on the demo: a rule is previewed and fires, and the numbers of its incident match the raw tables.
import { about, rounded } from '../figures.mjs';
import { check } from '../reader.mjs';

const [LATEST, BEFORE] = ['4.12.0', '4.11.0'];
const TEMPLATE = 'A span got slower (p95)';
const RULE = 'Checkout got slower';
const WINDOW = '20160';
/** Rules are evaluated every two seconds here. The limit is long because a busy machine is slow. */
const ROUNDS_MS = 120_000;

async function open(reader, path, title) {
  await reader.page.goto(path);
  await reader.page.getByRole('heading', { level: 1, name: title }).waitFor();
  await reader.settled();
}

/** Calls the API with the session of the page. */
function api({ page }, path, options = {}) {
  return page.evaluate(
    async ([path, { method = 'GET', body }]) => {
      const headers = body ? { 'content-type': 'application/json' } : {};
      const answer = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
      if (!answer.ok) throw new Error(`${method} ${path} answers ${answer.status}: ${await answer.text()}`);
      return answer.status === 204 ? null : answer.json();
    },
    [path, options],
  );
}

const project = ({ page }) => new URL(page.url()).searchParams.get('project');

/** The value of a card. */
function card({ page }, label) {
  const named = page.locator('.label').getByText(label, { exact: true });
  const cards = page.getByRole('region', { name: 'Evidence' }).locator('.card');
  return cards.filter({ has: named }).locator('.value').innerText();
}

async function a_rule_is_made_from_a_template_and_tried_on_the_past(reader) {
  const { page } = reader;
  await open(reader, '/alert-rules', 'Alert rules');
  // The demo has a rule, whose incidents would be among those of these walks.
  const rules = `/api/v1/projects/${project(reader)}/alert-rules`;
  for (const { id } of (await api(reader, rules)).rules) await api(reader, `${rules}/${id}`, { method: 'DELETE' });
  await open(reader, '/alert-rules', 'Alert rules');
  await page.getByText('No alert rules yet').waitFor();
  await reader.look('alerts-none');
  await page.getByRole('link', { name: 'New rule' }).first().click();
  await page.getByRole('heading', { name: 'New alert rule' }).waitFor();
  await reader.look('alerts-templates');
  await page.getByRole('link', { name: TEMPLATE }).click();
  const form = page.getByRole('form', { name: 'Rule' });
  await form.getByLabel('Name').fill(RULE);
  // The demo has few installs, so the rule needs a longer window for enough samples.
  await form.getByLabel('Compare with').selectOption('same_age');
  await form.getByLabel('Window (minutes)').fill(WINDOW);
  await form.getByLabel('Minimum samples').fill('20');
  await form.getByLabel('Lasts for').fill('0');
  const attribute = form.getByLabel('Group by').locator('option', { hasText: 'experiment (attribute)' });
  await attribute.waitFor({ state: 'attached' });
  const words = await form.getByRole('region', { name: 'Rule in words' }).innerText();
  for (const part of ['for any name, the p95 of spans', 'at least 20 % and 10 ms slower', 'over at most 14 days'])
    check(words.includes(part), `the rule in words lacks "${part}": ${words}`);
  check(
    (await form.getByLabel('Minimum change (%)', { exact: true }).inputValue()) === '20',
    'a fifth is not shown as percent',
  );
  check(
    (await form.getByLabel('Minimum absolute change (ms)').inputValue()) === '10',
    'microseconds are not shown as milliseconds',
  );
  await page.getByRole('button', { name: '7 days' }).click();
  const preview = page.getByRole('region', { name: 'Preview' });
  await preview.getByText(/The rule would have fired/).waitFor({ timeout: ROUNDS_MS });
  const fired = preview.getByRole('table', { name: 'When the rule would have fired' });
  const rows = await fired.locator('tbody tr').allInnerTexts();
  check(
    rows.some(
      (row) => row.includes('checkout') && row.includes(` in ${BEFORE} to `) && row.includes(` in ${LATEST} (`),
    ),
    `the preview does not list the slower checkout: ${rows}`,
  );
  const chart = preview.getByRole('region', { name: /^p95 of .*checkout/ });
  await chart.locator('svg.chart, svg').first().waitFor();
  check((await chart.getByText('so far').count()) === 0, 'the latest evaluation is shown as unfinished');
  await preview.getByRole('heading', { name: 'Skipped groups' }).waitFor();
  await reader.look('alerts-new-rule');

  reader.expect(422);
  await form.getByLabel('Window (minutes)').fill('2');
  await form.getByText('between 5 and 43200').waitFor();
  await reader.look('alerts-fault');
  await form.getByLabel('Window (minutes)').fill(WINDOW);
  await form.getByText('between 5 and 43200').waitFor({ state: 'detached' });
  await form.getByRole('button', { name: 'Create rule' }).click();
  await page.getByText('It runs within a minute').waitFor();
  await page.waitForURL(/\/alert-rules\/[0-9a-f-]{36}/);
}

async function it_fires_and_everybody_sees_it(reader, state) {
  const { page } = reader;
  await open(reader, '/', 'Overview');
  const badge = page.getByRole('link', { name: /Incidents \d+ firing/ });
  const end = Date.now() + ROUNDS_MS;
  while (!(await badge.isVisible())) {
    check(Date.now() < end, 'no round opened an incident');
    await page.reload();
    await reader.settled();
  }
  const line = page.getByRole('region', { name: 'Firing incidents' }).getByRole('link').filter({ hasText: 'checkout' });
  await line.waitFor();
  await reader.look('alerts-overview');
  await line.click();
  await page.waitForURL(/\/incidents\/[0-9a-f-]{36}/);
  state.incident = new URL(page.url()).pathname;
  await page.getByRole('heading', { level: 1, name: RULE }).waitFor();
  await reader.settled();
  await page.goBack();
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  await page.goForward();
  await page.getByRole('heading', { level: 1, name: RULE }).waitFor();
}

async function its_evidence_matches_the_api_and_the_raw_tables(reader, state) {
  const { page } = reader;
  await open(reader, state.incident, RULE);
  const id = state.incident.split('/')[2];
  const { evidence } = await api(reader, `/api/v1/projects/${project(reader)}/incidents/${id}`);
  const { numbers, sides, question } = evidence;

  const asked = await api(reader, question);
  const [now, samples] = asked.rows[0].values;
  check(now === numbers.value, `the query returns ${now}, the evidence has ${numbers.value}`);
  check(samples === numbers.samples, `the query counts ${samples} samples, the evidence has ${numbers.samples}`);
  rounded(await card(reader, `p95 in ${LATEST}`), now / 1000, 'p95 of the incident');
  rounded(await card(reader, `p95 in ${BEFORE}`), numbers.base / 1000, 'p95 of the version before');
  // A change has two digits.
  about((await card(reader, 'Change')).replace(/^[+−]/, ''), numbers.relative, 'the change', 0.05);

  for (const [version, from, to, wanted] of [
    [LATEST, sides.from, sides.to, numbers.value],
    [BEFORE, sides.base_from, sides.base_to, numbers.base],
  ]) {
    const [row] = await state.demo.sql(
      `SELECT quantileExactWeighted(0.95)(duration_us, toUInt64(round(1000 / sample_rate))) AS p95 FROM spans
       WHERE name = 'checkout' AND app_version = '${version}'
       AND start >= fromUnixTimestamp64Micro(${from}) AND start < fromUnixTimestamp64Micro(${to})`,
    );
    about(`${wanted / 1000} ms`, Number(row.p95) / 1000, `p95 of ${version} in the raw table`);
  }
  await page.getByRole('region', { name: 'p95 over time' }).locator('svg.chart, svg').first().waitFor();
  await page.getByRole('table', { name: 'Largest changes' }).waitFor();
  await page.getByRole('region', { name: 'Stacks that blocked the main thread' }).getByRole('link').first().waitFor();
  await reader.look('alerts-incident');
  await page.getByRole('link', { name: 'Show in Spans' }).click();
  await page.waitForURL(/\/spans\?.*name=checkout/);
  check(page.url().includes(`base_app_version=${BEFORE}`), `the screen compares nothing: ${page.url()}`);
  await page.goBack();
  await page.getByRole('heading', { level: 1, name: RULE }).waitFor();
}

/** The positions of the buttons in the head of the page. */
function places({ page }) {
  const names = ['Mute…', 'Copy as Markdown'].map((name) => page.getByRole('button', { name }));
  const all = [...names, page.getByRole('link', { name: 'Show in Spans' })];
  return Promise.all(all.map((one) => one.boundingBox()));
}

const line = ({ page }, name) => page.getByLabel('Handling').getByRole('status').filter({ hasText: name });

async function it_is_acknowledged_and_the_acknowledgement_is_undone(reader, state) {
  const { page } = reader;
  await open(reader, state.incident, RULE);
  const button = page.getByRole('button', { name: /^Acknowledged?$/ });
  const heights = () => page.getByLabel('Handling').boundingBox();
  const [before, high, of] = [await places(reader), await heights(), await button.boundingBox()];
  await button.click();
  const acknowledged = line(reader, /^Acknowledged/);
  await acknowledged.getByText(state.demo.email).waitFor();
  check(await button.isDisabled(), 'an acknowledged incident can be acknowledged');
  check(JSON.stringify(await places(reader)) === JSON.stringify(before), 'a button moved');
  check(JSON.stringify(await button.boundingBox()) === JSON.stringify(of), 'the button moved or changed its size');
  check((await heights()).height === high.height, 'the page below moved');
  await page.reload();
  await acknowledged.getByText(state.demo.email).waitFor();
  await reader.look('alerts-acknowledged');
  // Elsewhere, it no longer looks like one that needs attention.
  await open(reader, '/', 'Overview');
  const banner = page.getByRole('region', { name: 'Firing incidents' }).getByRole('listitem');
  const handled = banner.filter({ hasText: `acknowledged by ${state.demo.email}` });
  await handled.filter({ hasText: 'checkout' }).waitFor();
  check((await handled.locator('.badge.bad, .badge.warn').count()) === 0, 'an acknowledged incident is coloured');
  await open(reader, state.incident, RULE);
  await acknowledged.getByRole('button', { name: 'Undo acknowledgement' }).click();
  await acknowledged.getByText('Not yet').waitFor();
  check(await button.isEnabled(), 'the acknowledgement was not withdrawn');
}

async function it_is_muted_and_the_mute_is_ended(reader, state) {
  const { page } = reader;
  await open(reader, state.incident, RULE);
  const mute = async (reason) => {
    await page.getByRole('button', { name: 'Mute…' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByLabel('7 days').check();
    await dialog.getByLabel('Reason').fill(reason);
    await reader.look('alerts-mute');
    await dialog.getByRole('button', { name: 'Mute', exact: true }).click();
  };
  const muted = line(reader, /^Muted/);
  await muted.getByText('No', { exact: true }).waitFor();
  await mute('It is known');
  await muted.getByText('It is known').waitFor();
  const shown = await muted.innerText();
  check(shown.includes(state.demo.email) && shown.includes('checkout'), `the mute has no author or group: ${shown}`);
  // A muted incident no longer looks like one that needs attention, neither here nor elsewhere.
  const firing = page.getByRole('main').locator('.badge').filter({ hasText: 'firing' });
  check((await firing.and(page.locator('.bad')).count()) === 0, 'the page of a muted incident is coloured');
  await open(reader, '/', 'Overview');
  const banner = page.getByRole('region', { name: 'Firing incidents' }).getByRole('listitem');
  const quiet = banner.filter({ hasText: 'muted until' }).filter({ hasText: 'checkout' });
  await quiet.waitFor();
  check((await quiet.locator('.badge.bad, .badge.warn').count()) === 0, 'a muted incident is coloured');
  await open(reader, state.incident, RULE);
  await muted.getByRole('button', { name: 'End mute' }).click();
  await muted.getByText('No', { exact: true }).waitFor();

  await mute('It is known again');
  await muted.getByText('It is known again').waitFor();
  await open(reader, '/mutes', 'Mutes');
  const row = page.getByRole('row').filter({ hasText: 'It is known again' });
  check((await row.innerText()).includes('checkout'), `the mute is not of the group: ${await row.innerText()}`);
  await reader.look('alerts-mutes');
  await row.getByRole('button', { name: /End the mute/ }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'End it now' }).click();
  await page.getByText('Nothing is muted').waitFor();
}

const COMMENT = '<b>Known</b>, fixed in the next version.';

async function it_is_assigned_and_commented_on(reader, state) {
  const { page } = reader;
  await open(reader, state.incident, RULE);
  const handling = page.getByLabel('Handling');
  const assignee = handling.getByRole('group', { name: 'Assignee' });
  const toMe = assignee.getByRole('button', { name: 'Assign to me' });
  await toMe.click();
  await toMe.waitFor({ state: 'detached' });
  await assignee.getByRole('button').click();
  await page.getByRole('option', { name: 'Nobody' }).click();
  await toMe.click();
  await toMe.waitFor({ state: 'detached' });
  await handling.getByRole('textbox', { name: 'Comment' }).fill(COMMENT);
  await handling.getByRole('button', { name: 'Add comment' }).click();
  await handling.getByText(COMMENT).waitFor();
  await reader.look('alerts-assigned');
  await open(reader, '/incidents', 'Incidents');
  await page.getByLabel('Assigned to me').check();
  await page.waitForURL(/assigned=me/);
  await reader.settled();
  const rows = page.getByRole('table', { name: 'Firing incidents' }).locator('tbody tr');
  check((await rows.count()) === 1, `${await rows.count()} incidents are assigned to the reader`);
}

async function on_call_acknowledges_from_the_link_of_a_notification(reader, state) {
  const { page } = reader;
  // The first click opens the link in the message. A person without a session logs in first.
  reader.expect(401);
  await page.goto(`${state.incident}?project=shop`);
  await page.getByLabel('E-mail address').fill(state.demo.email);
  await page.getByLabel('Password').fill(state.demo.password);
  await page.getByRole('button', { name: 'Log in', exact: true }).click();
  await page.getByRole('heading', { level: 1, name: RULE }).waitFor();
  check(new URL(page.url()).pathname === state.incident, `the login leads to ${page.url()}`);
  // The second click.
  await page.getByRole('button', { name: 'Acknowledge', exact: true }).click();
  await line(reader, /^Acknowledged/)
    .getByText(state.demo.email)
    .waitFor();
}
on_call_acknowledges_from_the_link_of_a_notification.options = { storageState: undefined };

async function its_janks_happened_on_its_pages_and_are_per_hour_of_use(reader, state) {
  const { page } = reader;
  await open(reader, state.incident, RULE);
  const janks = page.getByRole('region', { name: 'Stacks that blocked the main thread' }).first();
  await janks.getByRole('link').first().waitFor();
  await reader.settled();
  const pages = await state.demo.sql(
    `SELECT page, count() AS spans FROM spans WHERE name = 'checkout' AND app_version = '${LATEST}' GROUP BY page ORDER BY page`,
  );
  const address = new URL(
    await janks.getByRole('link', { name: 'All of these janks' }).getAttribute('href'),
    page.url(),
  );
  const shown = address.searchParams.getAll('page').sort();
  check(
    JSON.stringify(shown) === JSON.stringify(pages.map((row) => row.page)),
    `checkout ran on ${JSON.stringify(pages)}, the janks are of ${shown}`,
  );
  const changes = await janks.getByRole('table').locator('.change').allInnerTexts();
  check(
    changes.every((text) => !/\d,\d{3} %/.test(text)),
    `a change of raw counts, not of rates: ${changes}`,
  );
}

async function its_evidence_is_copied_as_markdown(reader, state) {
  const { page } = reader;
  const copied = async () => {
    await page.getByRole('button', { name: 'Copy as Markdown' }).click();
    await page.getByText('Copied as Markdown.').first().waitFor();
    return page.evaluate(() => navigator.clipboard.readText());
  };
  await reader.context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await open(reader, state.incident, RULE);
  const text = await copied();
  for (const part of [
    `## ${RULE}`,
    `**p95 in ${LATEST}:**`,
    `**p95 in ${BEFORE}:**`,
    'Alert when the p95 of checkout',
    '**Assigned to:**',
    '\\<b\\>Known\\</b\\>, fixed in the next version.',
    '```',
  ])
    check(text.includes(part), `the Markdown of the incident lacks "${part}": ${text}`);
  check(text.includes(`${state.demo.url}${state.incident}?project=shop`), `no link to the incident: ${text}`);

  await open(
    reader,
    `/spans?project=shop&range=30d&name=checkout&app_version=${LATEST}&base_app_version=${BEFORE}`,
    'checkout',
  );
  const span = await copied();
  check(span.includes(`| Measure | ${LATEST} | ${BEFORE} | Change |`) && !span.includes('range='), `the span: ${span}`);

  await open(reader, '/jank?project=shop&range=30d', 'Jank');
  await page.getByRole('table', { name: 'Jank groups' }).getByRole('link').first().click();
  await page.getByRole('heading', { level: 1 }).waitFor();
  await reader.settled();
  const group = await copied();
  check(
    group.startsWith('## Jank: ') && group.includes('Per hour of use') && group.includes('```'),
    `the group: ${group}`,
  );
}

async function incidents_are_filtered_by_the_address(reader, state) {
  const { page } = reader;
  await open(reader, '/incidents', 'Incidents');
  const table = page.getByRole('table', { name: 'Firing incidents' });
  await table.getByRole('link', { name: RULE }).first().waitFor();
  await page.getByRole('button', { name: 'critical' }).click();
  await page.getByText('No incidents match').waitFor();
  await page.goBack();
  await table.waitFor();
  await page.getByRole('button', { name: 'Resolved' }).click();
  await page.waitForURL(/state=resolved/);
  await table.waitFor({ state: 'detached' });
  await open(reader, '/incidents?state=firing&severity=warning', 'Incidents');
  await table.waitFor();
  await reader.look('alerts-incidents');
  const shown = await page.getByRole('link', { name: /Incidents \d+ firing/ }).innerText();
  const rows = await table.locator('tbody tr').count();
  check(shown.includes(String(rows)), `the badge shows ${shown}, the table has ${rows} rows`);
}

async function a_rule_is_changed_over_that_of_another_person_and_deleted(reader) {
  const { page } = reader;
  reader.expect(409);
  await open(reader, '/alert-rules', 'Alert rules');
  await page
    .getByRole('link', { name: /\d+ firing/ })
    .last()
    .waitFor();
  await reader.look('alerts-rules');
  await page.getByRole('table').getByRole('link', { name: RULE }).click();
  const form = page.getByRole('form', { name: 'Rule' });
  await form.getByLabel('Owner').waitFor();
  const path = `/api/v1/projects/${project(reader)}${new URL(page.url()).pathname}`;
  const theirs = await api(reader, path);
  const body = { expected_revision: theirs.revision, rule: { ...theirs.rule, owner: 'team-theirs' } };
  await api(reader, path, { method: 'PUT', body });
  await form.getByLabel('Owner').fill('team-mine');
  await form.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('Another person saved in the meantime').waitFor();
  await reader.look('alerts-conflict');
  await page.getByRole('button', { name: 'Overwrite with my changes' }).click();
  await page.getByText('revision 3').waitFor();
  check((await api(reader, path)).rule.owner === 'team-mine', 'the other revision was not overwritten');

  await form.getByLabel('Signal').selectOption('frame_windows');
  const offered = form.getByLabel('Group by').locator('option');
  await form.getByLabel('Group by').locator('option[value="refresh_hz"]').waitFor({ state: 'attached' });
  const dimensions = await offered.evaluateAll((all) => all.map((one) => one.value));
  for (const name of ['page', 'app_version', 'device_class'])
    check(dimensions.includes(name), `${name} is not offered as a dimension of frames: ${dimensions}`);

  page.on('dialog', (dialog) => dialog.accept());
  await open(reader, '/alert-rules', 'Alert rules');
  await page.getByRole('button', { name: `Turn ${RULE} off` }).click();
  await page.getByRole('button', { name: `Turn ${RULE} on` }).waitFor();
  await page.getByRole('link', { name: /Incidents \d+ firing/ }).waitFor({ state: 'detached' });
  await page.getByRole('table').getByRole('link', { name: RULE }).click();
  await page.getByRole('button', { name: 'Delete…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByText('No alert rules yet').waitFor();
}

async function channels_are_made_tested_and_their_messages_seen(reader) {
  const { page } = reader;
  reader.expect(422);
  await open(reader, '/notifications', 'Notifications');
  await page.getByRole('button', { name: 'New channel' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name', { exact: true }).fill('Ops');
  // A channel must not reach addresses in the network of the server.
  await dialog.getByLabel('URL').fill('http://127.0.0.1:9/');
  await reader.look('alerts-channel');
  await dialog.getByRole('button', { name: 'Create channel' }).click();
  await dialog.getByRole('alert').waitFor();
  await dialog.getByLabel('URL').fill('https://unjank.invalid/alerts');
  await dialog.getByLabel('Signing key').fill('0123456789abcdef');
  await dialog.getByRole('button', { name: 'Create channel' }).click();
  const row = page.getByRole('row').filter({ hasText: 'Ops' });
  await row.getByText('unjank.invalid').waitFor();
  await row.getByRole('button', { name: /Send a test/ }).click();
  await row.getByText(/Test failed: ./).waitFor();
  await reader.look('alerts-channels');
  await row.getByRole('button', { name: 'Change Ops' }).click();
  check((await dialog.getByLabel('URL').inputValue()) === '', 'the saved URL is shown');
  await dialog.getByLabel('Name', { exact: true }).fill('Ops, critical');
  await dialog.getByLabel('Minimum severity').selectOption('critical');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await row.getByText('incidents from critical').waitFor();

  await page.getByRole('tab', { name: 'Delivery log' }).click();
  await page.getByRole('button', { name: 'failed' }).click();
  await page.waitForURL(/tab=log.*state=failed/);
  await reader.look('alerts-log');
  await page.getByRole('tab', { name: 'Digest' }).click();
  await page.getByLabel('Digest text').waitFor();
  await reader.look('alerts-digest');
}

const PAGES = [
  '/incidents',
  '/alert-rules',
  '/alert-rules/new',
  '/mutes',
  '/notifications',
  '/notifications?tab=digest',
];

async function see(reader, state, suffix) {
  const rule = `/alert-rules/new?template=${encodeURIComponent(TEMPLATE)}&days=7`;
  for (const path of [...PAGES, rule, state.incident]) {
    await reader.page.goto(path);
    await reader.page.locator('h1').waitFor();
    if (path === rule)
      await reader.page
        .getByText(/would (not )?have fired/)
        .first()
        .waitFor({ timeout: ROUNDS_MS });
    const name = path.split('?')[0].split('/').slice(1, 3).join('-').slice(0, 24);
    const shot = `alerts-${name}${path.includes('?') ? '-2' : ''}-${suffix}`;
    await reader.look(shot);
    await reader.overflow(shot);
  }
}

async function alerting_in_dark_colours(reader, state) {
  await see(reader, state, 'dark');
}
alerting_in_dark_colours.options = { colorScheme: 'dark' };

async function alerting_on_a_narrow_screen(reader, state) {
  await see(reader, state, 'narrow');
}
alerting_on_a_narrow_screen.options = { viewport: { width: 400, height: 800 } };

/** In this order, because later walks depend on earlier ones. They run on the demo, after its login. */
export const walks = [
  a_rule_is_made_from_a_template_and_tried_on_the_past,
  it_fires_and_everybody_sees_it,
  its_evidence_matches_the_api_and_the_raw_tables,
  it_is_acknowledged_and_the_acknowledgement_is_undone,
  it_is_muted_and_the_mute_is_ended,
  it_is_assigned_and_commented_on,
  on_call_acknowledges_from_the_link_of_a_notification,
  its_janks_happened_on_its_pages_and_are_per_hour_of_use,
  its_evidence_is_copied_as_markdown,
  incidents_are_filtered_by_the_address,
  alerting_in_dark_colours,
  alerting_on_a_narrow_screen,
  a_rule_is_changed_over_that_of_another_person_and_deleted,
  channels_are_made_tested_and_their_messages_seen,
];
