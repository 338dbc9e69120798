// Alerting on the month of the made-up shop: a rule is tried on the past, fires, and its incident says what the raw tables hold.
import { about, rounded } from '../figures.mjs';
import { check } from '../reader.mjs';

const [LATEST, BEFORE] = ['4.12.0', '4.11.0'];
const TEMPLATE = 'A span got slower (p95)';
const RULE = 'Checkout got slower';
const WINDOW = '20160';
/** Rounds come each two seconds; a busy machine takes its time. */
const ROUNDS_MS = 120_000;

async function open(reader, path, title) {
  await reader.page.goto(path);
  await reader.page.getByRole('heading', { level: 1, name: title }).waitFor();
  await reader.settled();
}

/** What the API answers to whoever is logged in. */
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

/** The number of a card. */
function card({ page }, label) {
  const named = page.locator('.label').getByText(label, { exact: true });
  const cards = page.getByRole('region', { name: 'Evidence' }).locator('.card');
  return cards.filter({ has: named }).locator('.value').innerText();
}

async function a_rule_is_made_from_a_template_and_tried_on_the_past(reader) {
  const { page } = reader;
  await open(reader, '/alert-rules', 'Alert rules');
  await page.getByText('Nothing is watched yet').waitFor();
  await reader.look('alerts-none');
  await page.getByRole('link', { name: 'New rule' }).first().click();
  await page.getByRole('heading', { name: 'New alert rule' }).waitFor();
  await reader.look('alerts-templates');
  await page.getByRole('link', { name: TEMPLATE }).click();
  const form = page.getByRole('form', { name: 'Rule' });
  await form.getByLabel('Name').fill(RULE);
  // A hundred installs do not do much: more of their time is looked at.
  await form.getByLabel('The version before, of').selectOption('same_age');
  await form.getByLabel('Looked at').fill(WINDOW);
  await form.getByLabel('At least, samples').fill('20');
  await form.getByLabel('It must hold for').fill('0');
  check(
    (await form.getByLabel('Least change, %', { exact: true }).inputValue()) === '20',
    'a fifth is not shown as percent',
  );
  check((await form.getByLabel('and least, ms').inputValue()) === '10', 'microseconds are not shown as milliseconds');
  await page.getByRole('button', { name: '7 days' }).click();
  const preview = page.getByRole('region', { name: 'Preview' });
  await preview.getByText(/It would have fired/).waitFor({ timeout: ROUNDS_MS });
  const rows = await preview.getByRole('table').locator('tbody tr').allInnerTexts();
  check(
    rows.some((row) => row.includes('checkout') && row.includes(`${LATEST} compared with ${BEFORE}`)),
    `the preview does not say that checkout got slower: ${rows}`,
  );
  await reader.look('alerts-new-rule');

  reader.expect(422);
  await form.getByLabel('Looked at').fill('2');
  await form.getByText('between 5 and 43200').waitFor();
  await reader.look('alerts-fault');
  await form.getByLabel('Looked at').fill(WINDOW);
  await form.getByText('between 5 and 43200').waitFor({ state: 'detached' });
  await form.getByRole('button', { name: 'Make the rule' }).click();
  await page.getByText('It is evaluated within a minute').waitFor();
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

async function its_evidence_is_what_the_api_and_the_raw_tables_say(reader, state) {
  const { page } = reader;
  await open(reader, state.incident, RULE);
  const id = state.incident.split('/')[2];
  const { evidence } = await api(reader, `/api/v1/projects/${project(reader)}/incidents/${id}`);
  const { numbers, sides, question } = evidence;

  const asked = await api(reader, question);
  const [now, samples] = asked.rows[0].values;
  check(now === numbers.value, `the question answers ${now}, the evidence says ${numbers.value}`);
  check(samples === numbers.samples, `the question counts ${samples}, the evidence ${numbers.samples}`);
  rounded(await card(reader, `p95 in ${LATEST}`), now / 1000, 'p95 of the incident');
  rounded(await card(reader, `p95 in ${BEFORE}`), numbers.base / 1000, 'p95 of the version before');
  rounded((await card(reader, 'Change')).replace(/^[+−]/, ''), numbers.relative, 'the change');

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
  await page.getByRole('region', { name: 'p95 around it' }).locator('canvas').waitFor();
  await page.getByRole('table', { name: 'What moved' }).waitFor();
  await page.getByRole('region', { name: 'Janks beside it' }).getByRole('link').first().waitFor();
  await reader.look('alerts-incident');
  await page.getByRole('link', { name: 'Open the screen' }).click();
  await page.waitForURL(/\/spans\?.*name=checkout/);
  check(page.url().includes(`base_app_version=${BEFORE}`), `the screen compares nothing: ${page.url()}`);
  await page.goBack();
  await page.getByRole('heading', { level: 1, name: RULE }).waitFor();
}

async function it_is_acknowledged_and_muted(reader, state) {
  const { page } = reader;
  await open(reader, state.incident, RULE);
  await page.getByRole('button', { name: 'Acknowledge' }).click();
  await page.getByText('looks after it').waitFor();
  await page.getByRole('button', { name: 'Mute…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('7 days').check();
  await dialog.getByLabel('Why').fill('It is known');
  await reader.look('alerts-mute');
  await dialog.getByRole('button', { name: 'Mute', exact: true }).click();
  await page.getByText('nothing new begins').waitFor();

  await open(reader, '/mutes', 'Mutes');
  const row = page.getByRole('row').filter({ hasText: 'It is known' });
  check((await row.innerText()).includes('checkout'), `the mute is not of the group: ${await row.innerText()}`);
  await reader.look('alerts-mutes');
  await row.getByRole('button', { name: /End the mute/ }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'End it now' }).click();
  await page.getByText('Nothing is muted').waitFor();
}

async function incidents_are_filtered_by_the_address(reader, state) {
  const { page } = reader;
  await open(reader, '/incidents', 'Incidents');
  const table = page.getByRole('table', { name: 'Firing incidents' });
  await table.getByRole('link', { name: RULE }).first().waitFor();
  await page.getByRole('button', { name: 'critical' }).click();
  await page.getByText('No incident like that').waitFor();
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
  check(shown.includes(String(rows)), `the badge says ${shown}, the table has ${rows}`);
}

async function a_rule_is_changed_over_somebody_elses_and_deleted(reader) {
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
  await page.getByText('Somebody else saved in the meantime').waitFor();
  await reader.look('alerts-conflict');
  await page.getByRole('button', { name: 'Save mine over it' }).click();
  await page.getByText('revision 3').waitFor();
  check((await api(reader, path)).rule.owner === 'team-mine', 'mine was not saved over theirs');

  await form.getByLabel('Signal').selectOption('frame_windows');
  await form.getByLabel('Told apart by').locator('option', { hasText: 'refresh_hz' }).waitFor({ state: 'attached' });
  const dimensions = await form.getByLabel('Told apart by').locator('option').allInnerTexts();
  for (const name of ['page', 'app_version', 'device_class'])
    check(dimensions.includes(name), `${name} is no dimension of frames: ${dimensions}`);

  page.on('dialog', (dialog) => dialog.accept());
  await open(reader, '/alert-rules', 'Alert rules');
  await page.getByRole('button', { name: `Turn ${RULE} off` }).click();
  await page.getByRole('button', { name: `Turn ${RULE} on` }).waitFor();
  await page.getByRole('link', { name: /Incidents \d+ firing/ }).waitFor({ state: 'detached' });
  await page.getByRole('table').getByRole('link', { name: RULE }).click();
  await page.getByRole('button', { name: 'Delete…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
  await page.getByText('Nothing is watched yet').waitFor();
}

async function channels_are_made_tested_and_their_messages_seen(reader) {
  const { page } = reader;
  reader.expect(422);
  await open(reader, '/notifications', 'Notifications');
  await page.getByRole('button', { name: 'New channel' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name', { exact: true }).fill('Ops');
  // What is inside is not to be reached by way of a channel.
  await dialog.getByLabel('URL').fill('http://127.0.0.1:9/');
  await reader.look('alerts-channel');
  await dialog.getByRole('button', { name: 'Make the channel' }).click();
  await dialog.getByRole('alert').waitFor();
  await dialog.getByLabel('URL').fill('https://unjank.invalid/alerts');
  await dialog.getByLabel('Key to sign with').fill('0123456789abcdef');
  await dialog.getByRole('button', { name: 'Make the channel' }).click();
  const row = page.getByRole('row').filter({ hasText: 'Ops' });
  await row.getByText('unjank.invalid').waitFor();
  await row.getByRole('button', { name: /Send a test/ }).click();
  await row.getByText(/The test did not arrive: ./).waitFor();
  await reader.look('alerts-channels');
  await row.getByRole('button', { name: 'Change Ops' }).click();
  check((await dialog.getByLabel('URL').inputValue()) === '', 'the URL came back');
  await dialog.getByLabel('Name', { exact: true }).fill('Ops, critical');
  await dialog.getByLabel('Tells of incidents from').selectOption('critical');
  await dialog.getByRole('button', { name: 'Save' }).click();
  await row.getByText('incidents from critical').waitFor();

  await page.getByRole('tab', { name: 'Delivery log' }).click();
  await page.getByRole('button', { name: 'failed' }).click();
  await page.waitForURL(/tab=log.*state=failed/);
  await reader.look('alerts-log');
  await page.getByRole('tab', { name: 'Digest' }).click();
  await page.getByLabel('Text of the digest').waitFor();
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

/** In order: later ones see what earlier ones did. On the demo, after somebody logged in there. */
export const walks = [
  a_rule_is_made_from_a_template_and_tried_on_the_past,
  it_fires_and_everybody_sees_it,
  its_evidence_is_what_the_api_and_the_raw_tables_say,
  it_is_acknowledged_and_muted,
  incidents_are_filtered_by_the_address,
  alerting_in_dark_colours,
  alerting_on_a_narrow_screen,
  a_rule_is_changed_over_somebody_elses_and_deleted,
  channels_are_made_tested_and_their_messages_seen,
];
