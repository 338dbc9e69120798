// Disk usage, scrubbing, and the erasure of an install and of a whole project. Creates its own project and person.
import { randomBytes, randomUUID } from 'node:crypto';
import { check } from '../reader.mjs';
import { ADMIN, PROJECT } from '../server.mjs';

const KIOSK = 'kiosk';
const DAVE = { email: 'dave@example.com', name: 'Dave Display', password: 'the password of dave' };
const GONE = '0b5a6b9e-6a53-4d3c-9a3c-1d2f6a1e7c11';
const at = (query) => `/data?project=${KIOSK}${query ? `&${query}` : ''}`;

/** The spans of one install, and a jank whose stack no other install has. */
function batch(install_id) {
  const start = new Date(Date.now() - 600_000).toISOString();
  const stack = [{ class: 'com.example.kiosk.Screen', function: `draw${install_id.slice(0, 4)}`, line: 7 }];
  return {
    batch_id: randomUUID(),
    session_id: randomUUID(),
    resource: { app_id: 'com.example.kiosk', app_version: '1.0', install_id, os_name: 'linux', user_id: 'u-17' },
    spans: Array.from({ length: 20 }, (_, place) => ({
      trace_id: randomBytes(16).toString('hex'),
      span_id: randomBytes(8).toString('hex'),
      name: 'order',
      start,
      duration_us: 40_000 + place,
      page: 'MenuPage',
      attributes: { order: 'order CU-123456 of table 4', guest: 'Guest Eleven' },
    })),
    janks: [
      {
        start,
        duration_ms: 2500,
        kind: 'jank',
        thread: 'main',
        foreground: true,
        page: 'MenuPage',
        uptime_ms: 60_000,
        strategy: { threshold_ms: 2000, count: 1 },
        stack,
        samples: [{ offset_ms: 120, stack }],
      },
    ],
  };
}

async function a_second_project_has_data(reader, state) {
  const { page } = reader;
  const made = await page.request.post('/api/v1/projects', { data: { id: KIOSK, name: 'Kiosk' } });
  check(made.ok(), `no project: ${made.status()} ${await made.text()}`);
  await page.goto(at());
  await page.getByText('No rows are stored yet').waitFor();
  await reader.look('storage-empty');

  const key = await page.request.post(`/api/v1/projects/${KIOSK}/keys`, { data: { name: 'Kiosks' } });
  state.kioskKey = (await key.json()).key;
  const headers = { authorization: `Bearer ${state.kioskKey}` };
  // The server accepts a new key within a second.
  for (let tries = 0; tries < 50 && !(await page.request.get('/v1/config', { headers })).ok(); tries += 1) {
    await page.waitForTimeout(100);
  }
  for (const install of [GONE, randomUUID()]) {
    const answer = await page.request.post('/v1/ingest', { headers, data: batch(install) });
    check(answer.status() === 202, `a batch was rejected: ${answer.status()} ${await answer.text()}`);
    const { rejected } = await answer.json();
    check(rejected.length === 0, JSON.stringify(rejected));
  }
  for (let tries = 0; tries < 120; tries += 1) {
    const answer = await page.request.get(`/api/v1/projects/${KIOSK}/storage`);
    const tables = answer.ok() ? (await answer.json()).tables : [];
    if (['janks', 'spans_hourly'].every((name) => tables.some(({ table }) => table === name))) return;
    await page.waitForTimeout(500);
  }
  throw new Error('the sent events use no disk space');
}

async function the_storage_is_seen_and_retention_is_saved(reader) {
  const { page } = reader;
  await page.goto(at());
  await page.getByRole('row', { name: /^Spans spans 40/ }).waitFor();
  const days = page.getByLabel('Events (days)');
  await days.fill('two weeks');
  await page.getByText('Enter a whole number of days').waitFor();
  await reader.look('storage-fault');
  await page.getByRole('button', { name: 'Save' }).click();
  check(await days.evaluate((field) => field === document.activeElement), 'the field with the fault has no focus');
  await days.fill('14');
  await page.getByLabel('Quota (GB)').fill('2.5');
  await page.getByText('not saved').waitFor();
  const asked = page.waitForEvent('dialog').then((dialog) => dialog.dismiss());
  await page.getByRole('tab', { name: 'Scrubbing' }).click();
  await asked;
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText(/^Saved\./).waitFor();
  await page.getByText('of the quota', { exact: false }).first().waitFor();
  await page.getByText('not saved').waitFor({ state: 'detached' });
  await reader.look('storage');
  await page.reload();
  await days.waitFor();
  check((await days.inputValue()) === '14', 'the retention was not saved');
  check((await page.getByLabel('Quota (GB)').inputValue()) === '2.5', 'the quota was not saved');
}

async function a_project_over_its_quota_is_refused_and_shows_it(reader, { kioskKey }) {
  const { page } = reader;
  reader.expect(429);
  await page.goto(at());
  const quota = page.getByLabel('Quota (GB)');
  await quota.fill('0.000001');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText(/^Saved\./).waitFor();
  await untilOverQuota(page, true);
  await page.reload();
  await page.getByText('This project is over its quota.').waitFor();
  await reader.look('storage-over-quota');
  const headers = { authorization: `Bearer ${kioskKey}` };
  const refused = await page.request.post('/v1/ingest', { headers, data: batch(randomUUID()) });
  check((await refused.json()).code === 'quota_disk', `the batch got status ${refused.status()}`);
  await quota.fill('');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText(/^Saved\./).waitFor();
  await untilOverQuota(page, false);
  await page.reload();
  await page.getByText('no limit', { exact: true }).waitFor();
  check((await page.getByText('This project is over its quota.').count()) === 0, 'the banner stays');
}

async function untilOverQuota(page, wanted) {
  for (let tries = 0; tries < 120; tries += 1) {
    const answer = await page.request.get(`/api/v1/projects/${KIOSK}/storage`);
    if (answer.ok() && (await answer.json()).is_over_quota === wanted) return;
    await page.waitForTimeout(250);
  }
  throw new Error(`is_over_quota does not become ${wanted}`);
}

async function scrubbing_is_tried_and_saved(reader) {
  const { page } = reader;
  reader.expect(422);
  await page.goto(at());
  await page.getByRole('tab', { name: 'Scrubbing' }).click();
  await page.getByRole('button', { name: 'Add a rule' }).click();
  check(await page.getByLabel('Name').evaluate((field) => field === document.activeElement), 'the rule has no focus');
  await page.getByLabel('Name').fill('Customer');
  await page.getByLabel('Pattern').fill('CU-[0-9]{6');
  const save = page.getByRole('button', { name: 'Save' });
  await save.click();
  await page.getByText('Use at most 32 characters of').waitFor();
  await page.getByLabel('Name').fill('customer');
  await save.click();
  await page.getByRole('alert').getByText('is not a regular expression').waitFor();
  await reader.look('scrubbing-fault');
  await page.getByLabel('Pattern').fill('CU-[0-9]{6}');
  await page.getByLabel('Secret attributes').fill('guest');
  await page.getByRole('button', { name: 'Try on the last 24 hours' }).click();
  const examples = page.getByRole('table', { name: 'Texts that would change' });
  await examples.getByRole('row', { name: /Attribute order .*order \[customer\] of table 4 40/ }).waitFor();
  await examples.getByRole('row', { name: /Attribute guest Guest Eleven \[secret\] 40/ }).waitFor();
  await examples.scrollIntoViewIfNeeded();
  await reader.look('scrubbing-tried');
  await page.getByLabel('Plain attributes').fill('Guest');
  await page.getByText('In both lists: guest.').waitFor();
  await examples.waitFor({ state: 'detached' });
  await page.getByLabel('Plain attributes').fill('table');

  const builtIn = page.getByRole('switch', { name: 'Apply the built-in rules' });
  await builtIn.click();
  await page.getByText('Personal data and secrets in texts will then be stored').waitFor();
  await reader.look('scrubbing-off');
  await page.getByRole('button', { name: 'Cancel' }).click();
  check(await builtIn.isChecked(), 'the rules are off without a confirmation');
  await builtIn.click();
  await page.getByRole('button', { name: 'Switch off' }).click();
  await page.getByText('The built-in rules are off.').waitFor();
  await builtIn.click();
  await page.getByText('The built-in rules are off.').waitFor({ state: 'detached' });
  await save.click();
  await page.getByText(/^Saved\./).waitFor();
  await page.reload();
  await page.getByLabel('Pattern').waitFor();
  check((await page.getByLabel('Pattern').inputValue()) === 'CU-[0-9]{6}', 'the rule was not saved');
  check((await page.getByLabel('Secret attributes').inputValue()) === 'guest', 'the attribute was not saved');
  check(await builtIn.isChecked(), 'the built-in rules were switched off');
}

async function an_install_is_erased_and_has_a_receipt(reader) {
  const { page } = reader;
  await page.goto(at('tab=erasure'));
  await page.getByText('No erasures yet').waitFor();
  await reader.look('erasure-empty');
  const erase = page.getByRole('button', { name: 'Erase…' });
  await page.getByLabel('Install id').fill('kiosk 11');
  await erase.click();
  await page.getByText('An install id is a UUID').waitFor();
  await page.getByLabel('Install id').fill(GONE);
  await erase.click();
  await page.getByText('You cannot undo this.').first().waitFor();
  await page.getByRole('dialog').getByText('forwarded to another collector').waitFor();
  await reader.look('erase-install');
  await page.getByRole('dialog').getByRole('button', { name: 'Erase permanently' }).click();
  const row = page.getByRole('row', { name: new RegExp(GONE) });
  await row.getByText(/waiting|running/).waitFor();
  await page.getByText('1 under way').waitFor();
  await reader.look('erasure-under-way');
  await row.getByText('done', { exact: true }).waitFor({ timeout: 120_000 });
  await row.getByText(ADMIN.email).waitFor();
  const rows = Number(await row.getByRole('cell').nth(2).textContent());
  check(rows >= 21, `${rows} rows were deleted`);
  await page.getByRole('button', { name: `Receipt of Install ${GONE}` }).click();
  await page.waitForURL(/receipt=/);
  const dialog = page.getByRole('dialog');
  await dialog.getByRole('row', { name: /^spans 20$/ }).waitFor();
  await dialog.getByRole('row', { name: /^janks 1$/ }).waitFor();
  await reader.look('receipt');
  const download = page.waitForEvent('download');
  await dialog.getByRole('button', { name: 'Download' }).click();
  check(/^erasure-.*\.json$/.test((await download).suggestedFilename()), 'no file');
  await page.keyboard.press('Escape');
  await page.waitForURL((url) => !url.search.includes('receipt='));
  await page.getByRole('tab', { name: 'Storage' }).click();
  await page.getByRole('row', { name: /^Spans spans 20 / }).waitFor();
  await reader.look('erasure-storage');
}

async function erasures_are_in_the_audit_log_and_on_ingest_health(reader) {
  const { page } = reader;
  await page.goto(`/audit?project=${KIOSK}`);
  for (const said of ['storage settings', 'scrubbing rules', 'requested to erase', 'erased']) {
    await page.getByRole('listitem').filter({ hasText: said }).first().waitFor();
  }
  await reader.look('audit-data');
  await page.goto(`/ingest?project=${KIOSK}`);
  await page.getByRole('row', { name: /^Erased – 21 / }).waitFor();
  await page.getByText('Stored at first, then erased on request.').waitFor();
  await reader.look('ingest-erased');
}

async function a_person_is_invited_as_viewer(reader, state) {
  const { page } = reader;
  await page.goto(`/people?project=${KIOSK}`);
  await page.getByRole('button', { name: 'Invite a person' }).click();
  await page.getByLabel('E-mail address').fill(DAVE.email);
  await page.getByRole('dialog').getByLabel('Name').fill(DAVE.name);
  await page.getByLabel(`Role in ${KIOSK}`).selectOption('viewer');
  await page.getByRole('button', { name: 'Create invitation' }).click();
  state.daveLink = await page.getByTestId('secret').textContent();
}

async function a_viewer_sees_the_storage_and_changes_nothing(reader, { daveLink }) {
  const { page } = reader;
  reader.expect(401);
  await page.goto(daveLink);
  await page.getByLabel('Password', { exact: true }).fill(DAVE.password);
  await page.getByLabel('Repeat the password').fill(DAVE.password);
  await page.getByRole('button', { name: 'Set password and log in' }).click();
  await page.getByRole('navigation').getByRole('link', { name: 'Data' }).click();
  await page.getByRole('row', { name: /^Spans spans 20 / }).waitFor();
  await page.getByText('Admins of the project can change these settings.').waitFor();
  check(await page.getByLabel('Events (days)').isDisabled(), 'a viewer changes the retention');
  check((await page.getByRole('button', { name: 'Save' }).count()) === 0, 'a viewer is offered to save');
  await reader.look('storage-viewer');
  await page.getByRole('tab', { name: 'Scrubbing' }).click();
  await page.getByText('Admins of the project can change these settings.').waitFor();
  check(await page.getByLabel('Pattern').isDisabled(), 'a viewer changes a rule');
  check((await page.getByRole('button', { name: /Save|Try|Add/ }).count()) === 0, 'a viewer is offered to change it');
  await reader.look('scrubbing-viewer');
  await page.getByRole('tab', { name: 'Erasure' }).click();
  await page.getByText('Only admins of the project can see').waitFor();
  check((await page.getByRole('button', { name: 'Erase…' }).count()) === 0, 'a viewer is offered to erase');
}
a_viewer_sees_the_storage_and_changes_nothing.options = { storageState: undefined };

async function the_viewer_becomes_an_admin_of_the_project(reader) {
  const { page } = reader;
  await page.goto(`/people?project=${KIOSK}`);
  await page.getByLabel(`Role of ${DAVE.email}`).selectOption('admin');
  await page.getByText('Role updated.').waitFor();
}

async function an_admin_of_the_project_stays_within_the_installation(reader) {
  const { page } = reader;
  reader.expect(401);
  await page.goto(at());
  await page.getByLabel('E-mail address').fill(DAVE.email);
  await page.getByLabel('Password').fill(DAVE.password);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByText('Only admins of the installation can change the quota.').waitFor();
  check(await page.getByLabel('Quota (GB)').isDisabled(), 'the quota can be changed');
  const days = page.getByLabel('Events (days)');
  await days.fill('0');
  await page.getByText('Only admins of the installation can keep rows for longer than 30 days.').waitFor();
  await reader.look('storage-admin');
  await days.fill('7');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText(/^Saved\./).waitFor();
  await page.getByRole('tab', { name: 'Erasure' }).click();
  await page.getByRole('row', { name: new RegExp(GONE) }).waitFor();
  check((await page.getByText('Erase the whole project').count()) === 0, 'the project can be erased');
}
an_admin_of_the_project_stays_within_the_installation.options = { storageState: undefined };

async function data_on_a_narrow_dark_screen(reader) {
  const { page } = reader;
  for (const tab of ['storage', 'opentelemetry', 'scrubbing', 'erasure']) {
    await page.goto(at(`tab=${tab}`));
    await page.getByRole('tab', { name: tab, exact: false, selected: true }).waitFor();
    await reader.settled();
    await reader.look(`data-${tab}-narrow-dark`);
    await reader.overflow(`data-${tab}-narrow-dark`);
  }
  await page.getByRole('tab', { name: 'Scrubbing' }).click();
  await page.getByLabel('Pattern').scrollIntoViewIfNeeded();
  await reader.look('data-rule-narrow-dark');
  await page.goBack();
  await page.getByRole('button', { name: /^Receipt of/ }).click();
  await page.getByRole('dialog').waitFor();
  await reader.look('receipt-narrow-dark');
  await reader.overflow('receipt-narrow-dark');
}
data_on_a_narrow_dark_screen.options = { viewport: { width: 400, height: 800 }, colorScheme: 'dark' };

async function a_whole_project_is_erased(reader, { kioskKey }) {
  const { page } = reader;
  await page.goto(at('tab=erasure'));
  await page.getByRole('button', { name: 'Erase the project…' }).click();
  const act = page.getByRole('button', { name: 'Erase the project permanently' });
  await page.getByLabel(`Type ${KIOSK} to confirm`).fill(PROJECT);
  check(await act.isDisabled(), 'it does not ask for the id');
  await page.getByLabel(`Type ${KIOSK} to confirm`).fill(KIOSK);
  await page.getByRole('dialog').getByText('forwarded to another collector').waitFor();
  await reader.look('erase-project');
  await act.click();
  await page.getByRole('heading', { name: 'Projects', exact: true }).waitFor();
  const list = page.getByRole('region', { name: 'Erasures of projects' });
  const row = list.getByRole('row', { name: new RegExp(`Whole project ${KIOSK}`) });
  await row.getByText(/waiting|running/).waitFor();
  await reader.look('projects-erasing');
  const refused = await fetch(new URL('/v1/config', page.url()), { headers: { authorization: `Bearer ${kioskKey}` } });
  check(refused.status === 401, `the key still works: ${refused.status}`);
  await row.getByText('done', { exact: true }).waitFor({ timeout: 120_000 });
  await page.getByRole('link', { name: 'Kiosk' }).waitFor({ state: 'detached' });
  await list.getByRole('button', { name: `Receipt of Whole project ${KIOSK}` }).click();
  await page
    .getByRole('dialog')
    .getByRole('row', { name: /^spans 20$/ })
    .waitFor();
  await reader.look('projects-erased');
  check((await page.request.get(`/api/v1/projects/${KIOSK}/storage`)).status() === 404, 'the project is still there');
}

/** In this order, because later walks depend on earlier ones. */
export const walks = [
  a_second_project_has_data,
  the_storage_is_seen_and_retention_is_saved,
  a_project_over_its_quota_is_refused_and_shows_it,
  scrubbing_is_tried_and_saved,
  an_install_is_erased_and_has_a_receipt,
  erasures_are_in_the_audit_log_and_on_ingest_health,
  a_person_is_invited_as_viewer,
  a_viewer_sees_the_storage_and_changes_nothing,
  the_viewer_becomes_an_admin_of_the_project,
  an_admin_of_the_project_stays_within_the_installation,
  data_on_a_narrow_dark_screen,
  a_whole_project_is_erased,
];
