// Remote configuration: from an edit to what a device gets, and back.
import { check } from '../reader.mjs';
import { PROJECT } from '../server.mjs';

async function served(page, state, query = '') {
  const headers = { authorization: `Bearer ${state.key}` };
  const answer = await page.request.get(`/v1/config?${query}`, { headers });
  check(answer.ok(), `GET /v1/config: ${answer.status()}`);
  return answer.json();
}

/** Whoever serves hears of a save at once, but not before the answer to it. */
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
  await page.goto(`/config?project=${PROJECT}`);
  const base = page.getByLabel('Base document');
  await base.fill('{\n  "enabled": true,\n  "sampling": { "janks": 7 },\n');
  await page.getByRole('button', { name: 'Check' }).click();
  await page.getByText('this is not JSON').waitFor();
  await base.fill('{\n  "enabled": true,\n  "sampling": {\n    "janks": 7\n  }\n}');
  await page.getByRole('button', { name: 'Override' }).click();
  await page.getByLabel('Id', { exact: true }).fill('Not a slug');
  await page.getByRole('button', { name: 'Check' }).click();
  await page.getByRole('button', { name: 'Line 4' }).waitFor();
  await page.getByText('is not an id').waitFor();
  await reader.look('config-faults');
  await page.getByRole('button', { name: 'Discard' }).click();
}

async function an_edit_is_checked_previewed_saved_and_served(reader, state) {
  const { page } = reader;
  await page.goto(`/config?project=${PROJECT}`);
  await page.getByLabel('Base document').fill('{\n  "sampling": { "janks": 0.5 }\n}');
  await page.getByRole('button', { name: 'Override' }).click();
  await page.getByLabel('Id', { exact: true }).fill('old-androids');
  await page.getByLabel('What is asked').selectOption('os_name');
  await page.getByLabel('OS', { exact: true }).fill('android');
  await page.getByLabel('Values that').fill('{ "sampling": { "janks": 0.25 } }');
  await page.getByRole('button', { name: 'Check' }).click();
  await page.getByText('no faults').waitFor();
  await page.getByRole('button', { name: 'Preview' }).click();
  await page.getByText('What it would do').waitFor();
  await reader.look('config-preview');
  await page.getByRole('button', { name: 'Save…' }).click();
  await page.getByLabel('Why').fill('Half of the janks will do');
  await reader.look('config-save');
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await page.getByText('Saved as revision 1').waitFor();
  await untilServed(page, state, 'os_name=ios', (document) => document.sampling.janks === 0.5, 'the base');
  await untilServed(page, state, 'os_name=android', (document) => document.sampling.janks === 0.25, 'the override');
}

async function overrides_change_their_order_and_go(reader, state) {
  const { page } = reader;
  await page.goto(`/config?project=${PROJECT}`);
  await page.getByRole('button', { name: 'Override' }).click();
  await page.getByRole('button', { name: 'Move override-2 up' }).click();
  const names = await page.locator('section.override .head strong').allTextContents();
  check(names.join() === 'override-2,old-androids', `the order is ${names}`);
  await page.getByRole('button', { name: 'Remove override-2' }).click();
  await page.getByRole('button', { name: 'Edit as JSON' }).click();
  await page.getByRole('button', { name: 'Edit as a form' }).click();
  check(await page.getByRole('button', { name: 'Save…' }).isDisabled(), 'nothing changed, and it can be saved');
  await page.getByRole('button', { name: 'Remove old-androids' }).click();
  await page.getByRole('button', { name: 'Save…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await page.getByText('Saved as revision 2').waitFor();
  await untilServed(page, state, 'os_name=android', (document) => document.sampling.janks === 0.5, 'no override');
}

async function somebody_who_saved_meanwhile_is_not_overwritten(reader) {
  const { page } = reader;
  reader.expect(409);
  await page.goto(`/config?project=${PROJECT}`);
  await page.getByText('Revision 2 is served').waitFor();
  await page.getByLabel('Base document').fill('{ "sampling": { "janks": 0.1 } }');
  const address = `/api/v1/projects/${PROJECT}/config`;
  const data = { expected_revision: 2, configuration: { base: { sampling: { janks: 0.75 } } }, note: 'Meanwhile' };
  check((await page.request.put(address, { data })).ok(), 'the other save failed');
  await page.getByRole('button', { name: 'Save…' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Save' }).click();
  await page.getByText('Somebody else saved').waitFor();
  await reader.look('config-conflict');
  await page.getByRole('button', { name: 'Load their version' }).click();
  await page.waitForFunction(() => document.querySelector('textarea')?.value.includes('0.75'));
}

async function an_earlier_revision_is_brought_back(reader, state) {
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

async function the_kill_switch_asks_first_and_then_works(reader, state) {
  const { page } = reader;
  await page.goto(`/config?project=${PROJECT}`);
  await page.getByRole('button', { name: 'Kill switch' }).click();
  const act = page.getByRole('button', { name: 'Switch everything off' });
  check(await act.isDisabled(), 'it does not ask for the name');
  await page.getByLabel('Why').fill('Too much');
  await page.getByLabel(`Type ${PROJECT} to confirm`).fill(PROJECT);
  await reader.look('kill-switch');
  await act.click();
  await page.getByText('Everything is switched off').waitFor();
  await untilServed(page, state, '', (document) => document.enabled === false, 'the kill switch');
}

/** In order: later ones see what earlier ones did. */
export const walks = [
  faults_are_shown_where_they_are,
  an_edit_is_checked_previewed_saved_and_served,
  overrides_change_their_order_and_go,
  somebody_who_saved_meanwhile_is_not_overwritten,
  an_earlier_revision_is_brought_back,
  the_kill_switch_asks_first_and_then_works,
];
