// The set-up of a fresh server, the first data, wrong and right passwords, links to pages, and the refresh of a session.
import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { check } from '../reader.mjs';
import { ADMIN, PROJECT } from '../server.mjs';

async function a_fresh_server_is_set_up_in_the_browser(reader, state) {
  const { page } = reader;
  // ClickHouse may still be starting.
  reader.expect(401, 403, 503);
  // Every URL shows the set-up. Without the link, the set-up asks for the code.
  await page.goto('/spans');
  await page.getByRole('heading', { name: 'Set up unjank' }).waitFor();
  await reader.look('set-up-without-code');
  await fillSetUp(page);
  await page.getByLabel('Set-up code').fill('ujs_guessed');
  await page.getByRole('button', { name: 'Create admin and log in' }).click();
  await page.getByText('This set-up code is wrong.').waitFor();
  // The URLs may differ only after the #, so the browser might not reload the page.
  await page.goto('about:blank');
  await page.goto(state.setUp);
  await page.getByRole('heading', { name: 'Set up unjank' }).waitFor();
  check((await page.getByLabel('Set-up code').count()) === 0, 'the set-up asks for the code of the link');
  await fillSetUp(page);
  await page.getByLabel('Repeat the password').fill('another password');
  await page.getByRole('button', { name: 'Create admin and log in' }).click();
  await page.getByText('The two new passwords do not match.').waitFor();
  await page.getByLabel('Repeat the password').fill(ADMIN.password);
  await reader.look('set-up');
  await page.getByRole('button', { name: 'Create admin and log in' }).click();
  await page.getByRole('heading', { name: 'Get started' }).waitFor();
}
a_fresh_server_is_set_up_in_the_browser.keepsSession = true;

async function fillSetUp(page) {
  await page.getByLabel('Name').fill(ADMIN.name);
  await page.getByLabel('E-mail address').fill(ADMIN.email);
  await page.getByLabel('Password', { exact: true }).fill(ADMIN.password);
  await page.getByLabel('Repeat the password').fill(ADMIN.password);
}

async function the_link_of_the_set_up_leads_to_the_login_afterwards(reader, state) {
  const { page } = reader;
  reader.expect(401);
  await page.goto(state.setUp);
  await page.getByText('unjank is set up already. Log in.').waitFor();
}
the_link_of_the_set_up_leads_to_the_login_afterwards.options = { storageState: undefined };

async function a_key_is_made_and_the_shown_command_sends_the_first_data(reader) {
  const { page } = reader;
  // ClickHouse may still be starting.
  reader.expect(503);
  await page.goto('/');
  await page.getByText('This project has no data yet').waitFor({ timeout: 120_000 });
  await reader.look('overview-without-data');
  await page.goto('/sessions');
  await page.getByText('This project has no data yet').waitFor();
  await page.goto('/');
  await page.getByRole('link', { name: 'Get started' }).click();
  await page.getByText('Waiting for the first batch…').waitFor();
  await reader.look('get-started');
  // The page shows an unknown key with the reason of its refusal.
  await page.getByLabel('Ingest key', { exact: true }).fill('ujt_an-api-token-by-mistake-0123456789012345678');
  check((await runShown(page)).includes('key_unknown'), 'the wrong key is accepted');
  await page.getByText('A request with an API token (“ujt_an-a…”) was refused.').waitFor();
  await page.getByRole('button', { name: 'Create key' }).click();
  await page.getByText('Copy this key now.').waitFor();
  check(
    (await page.getByLabel('Ingest key', { exact: true }).inputValue()).startsWith('ujk_'),
    'the new key is not filled in',
  );
  await untilAccepted(page);
  await page.getByText('Data is arriving.').waitFor();
  await page.getByRole('row', { name: /com.example.shop 4.12.0 Pixel 8/ }).waitFor();
  // The page also shows a rejected event.
  const text = await shownCommand(page);
  await run(text.replace('41250', '-1'));
  await page.getByText('Rejected spans: 1.').waitFor();
  await page.getByRole('main').getByRole('link', { name: 'App starts' }).waitFor();
  await reader.look('first-data');
  await page.getByRole('tab', { name: 'Rust' }).click();
  const program = await page.getByRole('region', { name: 'Rust program' }).textContent();
  check(program.startsWith('fn main() {') && !/SERVER|KEY/.test(program), program);
  await reader.look('get-started-rust');
  await theOtherSnippetsSendSpans(reader);
  await page.getByRole('link', { name: 'Spans', exact: true }).last().click();
  await page.getByRole('cell', { name: 'checkout' }).first().waitFor();
}

/** Sends the batch of the Kotlin program as the program would, and runs the command of OpenTelemetry. */
async function theOtherSnippetsSendSpans(reader) {
  const { page } = reader;
  await page.getByRole('tab', { name: 'Kotlin' }).click();
  const kotlin = await page.getByRole('region', { name: 'Kotlin program' }).textContent();
  const values = { '${UUID.randomUUID()}': randomUUID(), $start: new Date().toISOString(), $durationUs: '40000' };
  const [, template] = /"""([^]*)"""/.exec(kotlin);
  const body = Object.entries(values).reduce((text, [name, value]) => text.replace(name, value), template);
  const [, url] = /URI\("(.*?)"\)/.exec(kotlin);
  const [, authorization] = /"Authorization", "(.*?)"/.exec(kotlin);
  const headers = { authorization, 'content-type': 'application/json' };
  const sent = await fetch(url, { method: 'POST', headers, body });
  const receipt = await sent.text();
  check(sent.status === 202 && JSON.parse(receipt).accepted === 1, `the batch of the Kotlin program: ${receipt}`);
  await reader.look('get-started-kotlin');
  await page.getByRole('tab', { name: 'OpenTelemetry' }).click();
  await page
    .getByRole('region', { name: 'OpenTelemetry variables' })
    .getByText('OTEL_EXPORTER_OTLP_ENDPOINT')
    .waitFor();
  const answer = await run(await page.getByRole('region', { name: 'OTLP command' }).textContent());
  check(answer.trim() === '{}', `the command of OpenTelemetry: ${answer}`);
  await reader.look('get-started-otlp');
}

async function an_empty_page_says_why_it_is_empty(reader) {
  const { page } = reader;
  const filters = 'project=default&range=1h';
  await page.goto(`/frames?${filters}`);
  await page.getByText('No frames yet').first().waitFor();
  await page.getByText('unjank::frame(').first().waitFor();
  await reader.look('never-sent');
  await page.goto(`/spans?${filters}&app_version=9.9.9`);
  await page.getByText('No spans with these filters').waitFor();
  await reader.look('filtered');
  await page.getByRole('button', { name: 'Clear filters' }).click();
  await page.getByRole('cell', { name: 'checkout' }).first().waitFor();
  await page.goto('/spans?project=default&from=2026-01-01T00:00:00Z&to=2026-01-02T00:00:00Z');
  await page.getByText('No spans in this period').waitFor();
  await page.getByRole('button', { name: 'Show the last spans' }).click();
  await page.getByRole('cell', { name: 'checkout' }).first().waitFor();
  await page.goto(`/spans?${filters}&tab=recompositions`);
  await page.getByText('sampling.recompositions is 0 by default').waitFor();
  await reader.look('switched-off');
}

async function shownCommand(page) {
  return page.getByRole('region', { name: 'curl command' }).textContent();
}

async function run(command) {
  return (await promisify(execFile)('bash', ['-c', command])).stdout;
}

async function runShown(page) {
  return run(await shownCommand(page));
}

/** The server accepts a new key within a second. */
async function untilAccepted(page) {
  for (let tries = 0; tries < 50; tries += 1) {
    const answer = await runShown(page);
    if (answer.includes('"accepted":2')) return;
    await page.waitForTimeout(100);
  }
  throw new Error(`the shown command is refused: ${await runShown(page)}`);
}

async function the_first_admin_makes_a_project(reader) {
  const { page } = reader;
  await page.goto('/');
  await page.getByRole('navigation').getByRole('link', { name: 'Projects' }).click();
  await page.getByRole('button', { name: 'New project' }).click();
  await page.getByLabel('Id').fill(PROJECT);
  await page.getByRole('dialog').getByLabel('Name').fill('Shop');
  await page.getByRole('button', { name: 'Create project' }).click();
  await page.getByRole('heading', { name: `Settings of ${PROJECT}` }).waitFor();
  await page.getByLabel('Events per second', { exact: true }).fill('5000');
  await page.getByRole('button', { name: 'Save settings' }).click();
  await page.getByText(/^Saved\./).waitFor();
  await page.getByRole('cell', { name: '5,000' }).waitFor();
  await reader.look('projects');
}

async function a_wrong_password_is_refused_and_a_link_to_a_page_works_after_the_right_one(reader, state) {
  const { page } = reader;
  // ClickHouse may still be starting.
  reader.expect(401, 503);
  await page.goto(`/config?project=${PROJECT}&tab=history`);
  await reader.look('login');
  await page.getByLabel('E-mail address').fill(ADMIN.email);
  await page.getByLabel('Password').fill('not the password');
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByText('The e-mail address or the password is wrong.').waitFor();
  await reader.look('login-refused');
  await page.getByLabel('Password').fill(ADMIN.password);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByText('No revisions yet').waitFor();
  check(new URL(page.url()).search.includes('tab=history'), `the link was lost: ${page.url()}`);
  const cookies = await page.context().cookies();
  check(
    cookies.every((cookie) => cookie.httpOnly),
    'scripts can read a cookie',
  );
  state.loggedIn = true;
}
a_wrong_password_is_refused_and_a_link_to_a_page_works_after_the_right_one.keepsSession = true;
a_wrong_password_is_refused_and_a_link_to_a_page_works_after_the_right_one.options = { storageState: undefined };

async function a_session_continues_after_its_access_token_expires(reader, state) {
  const { page, context } = reader;
  // ClickHouse may still be starting.
  reader.expect(401, 503);
  await page.goto(`/keys?project=${PROJECT}`);
  await page.getByRole('heading', { name: 'Ingest keys' }).waitFor();
  // The browser deletes this cookie after ten minutes.
  await context.clearCookies({ name: '__Host-unjank' });
  const second = await context.newPage();
  await Promise.all([page.reload(), second.goto(`/people?project=${PROJECT}`)]);
  await page.getByRole('heading', { name: 'Ingest keys' }).waitFor();
  await second.getByRole('heading', { name: 'People', exact: true }).waitFor();
  check((await page.getByLabel('Password').count()) === 0, 'the session was lost');
  await second.close();
  state.storage = await context.storageState();
}

/** In this order, because later walks depend on earlier ones. */
export const walks = [
  a_fresh_server_is_set_up_in_the_browser,
  the_link_of_the_set_up_leads_to_the_login_afterwards,
  a_key_is_made_and_the_shown_command_sends_the_first_data,
  an_empty_page_says_why_it_is_empty,
  the_first_admin_makes_a_project,
  a_wrong_password_is_refused_and_a_link_to_a_page_works_after_the_right_one,
  a_session_continues_after_its_access_token_expires,
];
