// Remote configuration: edits, what devices then receive, and rollbacks.
import { check } from '../reader.mjs';
import { PROJECT } from '../server.mjs';

/** The ingest key of the walks. Creates one if no walk has done so yet. */
async function keyOf(page, state) {
  if (!state.key) {
    const made = await page.request.post(`/api/v1/projects/${PROJECT}/keys`, { data: { name: 'Android' } });
    state.key = (await made.json()).key;
    // The server accepts a new key within a second.
    await page.waitForTimeout(1500);
  }
  return state.key;
}

async function served(page, state, query = '') {
  const headers = { authorization: `Bearer ${await keyOf(page, state)}` };
  const answer = await page.request.get(`/v1/config?${query}`, { headers });
  check(answer.ok(), `GET /v1/config: ${answer.status()}`);
  return answer.json();
}

/** Polls, because the response to a save may arrive before the server serves the revision. */
async function untilServed(page, state, query, holds, what) {
  for (let tries = 0; tries < 50; tries += 1) {
    if (holds(await served(page, state, query))) return;
    await page.waitForTimeout(100);
  }
  throw new Error(`not served: ${what}`);
}

async function faults_are_shown_where_they_are(reader) {
  const { page } = reader;
  reader.expect(422);
  await page.goto(`/config?project=${PROJECT}&view=json`);
  const base = page.getByLabel('Base document');
  await base.fill('{\n  "enabled": true,\n  "sampling": { "janks": 7 },\n');
  await page.getByRole('button', { name: 'Check' }).click();
  await page.getByText('invalid JSON').waitFor();
  await base.fill('{\n  "enabled": true,\n  "sampling": {\n    "janks": 7\n  }\n}');
  await page.getByRole('button', { name: 'Override', exact: true }).click();
  await page.getByLabel('Id', { exact: true }).fill('Not a slug');
  await page.getByRole('button', { name: 'Check' }).click();
  await page.getByRole('button', { name: 'Line 4' }).waitFor();
  await page.getByText('is not an id').waitFor();
  await reader.look('config-faults');
  await page.getByRole('button', { name: 'Discard' }).click();
}

async function an_edit_is_checked_previewed_saved_and_served(reader, state) {
  const { page } = reader;
  await page.goto(`/config?project=${PROJECT}&view=json`);
  await page.getByLabel('Base document').fill('{\n  "sampling": { "janks": 0.5 }\n}');
  await page.getByRole('button', { name: 'Override', exact: true }).click();
  await page.getByLabel('Id', { exact: true }).fill('old-androids');
  await page.getByLabel('Property', { exact: true }).selectOption('os_name');
  await page.getByLabel('OS', { exact: true }).fill('android');
  await page.getByLabel('Values that').fill('{ "sampling": { "janks": 0.25 } }');
  await page.getByRole('button', { name: 'Check' }).click();
  await page.getByText('valid', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Preview' }).click();
  await page.getByText('Predicted effect').waitFor();
  await reader.look('config-preview');
  await page.getByRole('button', { name: 'Save…' }).click();
  await page.getByLabel('Reason (shown in the history)').fill('Half of the janks will do');
  await reader.look('config-save');
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await page.getByText('Saved as revision 1').waitFor();
  await untilServed(page, state, 'os_name=ios', (document) => document.sampling.janks === 0.5, 'the base');
  await untilServed(page, state, 'os_name=android', (document) => document.sampling.janks === 0.25, 'the override');
}

async function overrides_are_moved_and_removed(reader, state) {
  const { page } = reader;
  await page.goto(`/config?project=${PROJECT}`);
  await page.getByRole('button', { name: 'Override', exact: true }).click();
  await page.getByRole('button', { name: 'Move override-2 up' }).click();
  const names = await page.locator('section.override .head strong').allTextContents();
  check(names.join() === 'override-2,old-androids', `the order is ${names}`);
  await page.getByRole('button', { name: 'Remove override-2' }).click();
  await page.getByRole('button', { name: 'Edit as JSON' }).click();
  await page.getByRole('button', { name: 'Edit as a form' }).click();
  check(await page.getByRole('button', { name: 'Save…' }).isDisabled(), 'an unchanged configuration can be saved');
  await page.getByRole('button', { name: 'Remove old-androids' }).click();
  await page.getByRole('button', { name: 'Save…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await page.getByText('Saved as revision 2').waitFor();
  await untilServed(page, state, 'os_name=android', (document) => document.sampling.janks === 0.5, 'no override');
}

async function a_revision_that_another_person_saved_is_not_overwritten(reader) {
  const { page } = reader;
  reader.expect(409);
  await page.goto(`/config?project=${PROJECT}&view=json`);
  await page.getByText('Revision 2 is active').waitFor();
  await page.getByLabel('Base document').fill('{ "sampling": { "janks": 0.1 } }');
  const address = `/api/v1/projects/${PROJECT}/config`;
  const data = { expected_revision: 2, configuration: { base: { sampling: { janks: 0.75 } } }, note: 'Meanwhile' };
  check((await page.request.put(address, { data })).ok(), 'the other save failed');
  await page.getByRole('button', { name: 'Save…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await page.getByText('Another person saved').waitFor();
  await reader.look('config-conflict');
  await page.getByRole('button', { name: 'Load their version' }).click();
  await page.waitForFunction(() => document.querySelector('textarea')?.value.includes('0.75'));
}

async function an_earlier_revision_is_restored(reader, state) {
  const { page } = reader;
  await page.goto(`/config?project=${PROJECT}&tab=history`);
  await page.getByRole('button', { name: /Revision 1/ }).click();
  await page.getByText('"old-androids"').waitFor();
  await reader.look('config-history');
  await page.getByRole('button', { name: 'Roll back to this' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Roll back' }).click();
  await page.getByText('as revision 4').waitFor();
  await untilServed(page, state, 'os_name=android', (document) => document.sampling.janks === 0.25, 'revision 1');
}

async function fields_and_json_edit_the_same_draft(reader) {
  const { page } = reader;
  await page.goto(`/config?project=${PROJECT}`);
  const sampling = page.getByRole('group', { name: 'Base' }).getByRole('group', { name: 'Sampling' });
  await sampling.getByLabel('Janks').fill('700');
  await sampling.getByText('Enter a number from 0 to 100 %.').waitFor();
  await sampling.getByLabel('Page loads').fill('12.5');
  await reader.look('config-form');
  await page.getByRole('button', { name: 'JSON', exact: true }).click();
  const text = await page.getByLabel('Base document').inputValue();
  const { sampling: written } = JSON.parse(text);
  check(written.janks === 7 && written.page_loads === 0.125, `the text is ${text}`);
  await page.getByLabel('Base document').fill('{ "sampling": { "janks": 0.25 }, "jank": { "anr_ms": 7000 } }');
  await page.getByRole('button', { name: 'Form', exact: true }).click();
  check((await sampling.getByLabel('Janks').inputValue()) === '25', 'the field does not follow the text');
  await sampling.getByLabel('Janks').fill('');
  check((await sampling.getByLabel('Janks').getAttribute('placeholder')) === '100', 'no default is shown');
  await page.getByRole('button', { name: 'JSON', exact: true }).click();
  const left = JSON.parse(await page.getByLabel('Base document').inputValue());
  check(JSON.stringify(left) === '{"jank":{"anr_ms":7000}}', `the remaining document is ${JSON.stringify(left)}`);
  await page.getByRole('button', { name: 'Discard' }).click();
}

async function faults_from_the_server_are_shown_at_their_fields(reader) {
  const { page } = reader;
  await page.goto(`/config?project=${PROJECT}`);
  const base = page.getByRole('group', { name: 'Base' });
  await base.locator('summary', { hasText: 'Jank' }).click();
  await base.getByRole('button', { name: 'Change strategies' }).click();
  await base.getByLabel('Period, row 2').fill('100');
  await page.getByRole('button', { name: 'Check' }).click();
  await base.getByText('do not fit into a period').waitFor();
  check((await base.getByLabel('Period, row 2').getAttribute('aria-invalid')) === 'true', 'the field is not marked');
  await reader.look('config-form-faults');
  await page.getByRole('button', { name: 'Discard' }).click();
}

async function the_kill_switch_asks_first_and_then_works(reader, state) {
  const { page } = reader;
  await page.goto(`/config?project=${PROJECT}`);
  await page.getByRole('button', { name: 'Kill switch' }).click();
  const act = page.getByRole('button', { name: 'Switch everything off' });
  check(await act.isDisabled(), 'the kill switch does not require the id of the project');
  await page.getByText('Overrides stay unchanged').waitFor();
  await page.getByLabel('Reason (shown in the history)').fill('Too much');
  await page.getByLabel(`Type ${PROJECT} to confirm`).fill(PROJECT);
  await reader.look('kill-switch');
  await act.click();
  await page.getByText('Everything is switched off').waitFor();
  await untilServed(page, state, '', (document) => document.enabled === false, 'the kill switch');
}

async function every_page_shows_that_the_project_is_off_until_it_is_on_again(reader, state) {
  const { page } = reader;
  const banner = page.getByRole('region', { name: 'The project is off' });
  for (const path of ['/', '/keys', '/audit']) {
    await page.goto(`${path}?project=${PROJECT}`);
    await banner.getByText('Switched off by you').waitFor();
  }
  await banner.getByText('Too much').waitFor();
  await reader.look('switched-off');
  await banner.getByRole('button', { name: 'Switch on again' }).click();
  await page.getByRole('dialog').getByLabel('Reason (shown in the history)').fill('It was the other app');
  await page.getByRole('dialog').getByRole('button', { name: 'Switch on' }).click();
  await banner.waitFor({ state: 'detached' });
  await untilServed(page, state, '', (document) => document.enabled === true, 'switched on again');
}

async function the_audit_log_lists_changes_as_sentences(reader) {
  const { page } = reader;
  await page.goto(`/audit?project=${PROJECT}`);
  const on = page.getByRole('listitem').filter({ hasText: 'switched the project on with revision' });
  await on.getByText('It was the other app').waitFor();
  await page.getByText('switched the project off with').waitFor();
  await on.getByRole('button', { name: 'Details' }).click();
  await on.getByRole('region', { name: /What revision \d+ changed/ }).waitFor();
  await reader.look('audit-sentences');
  await page.getByRole('button', { name: 'Any action' }).click();
  await page.getByPlaceholder('Search').fill('ingest key created');
  await page.keyboard.press('Enter');
  await page.getByText('switched the project on').waitFor({ state: 'detached' });
  await page.getByText('created ingest key').first().waitFor();
  const saved = page.waitForEvent('download');
  await page.getByRole('button', { name: 'CSV' }).click();
  check((await saved).suggestedFilename() === 'audit-log.csv', 'no file');
  await page.getByRole('button', { name: 'Clear' }).click();
  await page.getByText('switched the project on').waitFor();
}

/** In this order, because later walks depend on earlier ones. */
export const walks = [
  faults_are_shown_where_they_are,
  an_edit_is_checked_previewed_saved_and_served,
  overrides_are_moved_and_removed,
  a_revision_that_another_person_saved_is_not_overwritten,
  an_earlier_revision_is_restored,
  fields_and_json_edit_the_same_draft,
  faults_from_the_server_are_shown_at_their_fields,
  the_kill_switch_asks_first_and_then_works,
  every_page_shows_that_the_project_is_off_until_it_is_on_again,
  the_audit_log_lists_changes_as_sentences,
];
