// Keys, tokens, people, and the audit log that shows all of it.
import { check } from '../reader.mjs';
import { ADMIN, PROJECT } from '../server.mjs';

const OTHER = { email: 'bob@example.com', name: 'Bob Builder', password: 'a long enough secret' };

async function a_key_is_made_shown_once_rotated_limited_and_revoked(reader, state) {
  const { page } = reader;
  await page.goto(`/keys?project=${PROJECT}`);
  await page.getByText('No keys yet').waitFor();
  await page.getByRole('button', { name: 'New key' }).click();
  await page.getByLabel('Name').fill('Android');
  await page.getByRole('button', { name: 'Make the key' }).click();
  state.key = await page.getByTestId('secret').textContent();
  check(state.key.length > 20, `no key: ${state.key}`);
  await reader.look('key-made');
  await page.getByRole('button', { name: 'I have kept it' }).click();
  const answer = await page.request.get('/v1/config', { headers: { authorization: `Bearer ${state.key}` } });
  check(answer.ok(), `the key does not work: ${answer.status()}`);

  await page.getByRole('button', { name: 'Quota' }).click();
  await page.getByLabel('At most, events per second').fill('250');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('250 events/s').waitFor();

  await page.getByRole('button', { name: 'Rotate' }).click();
  await page.getByLabel('Name').fill('Android 2');
  await page.getByRole('button', { name: 'Make the new key' }).click();
  await page.getByRole('button', { name: 'I have kept it' }).click();
  await page.getByRole('table').getByText('ends in 30 days').waitFor();
  await reader.look('keys');

  await page.getByRole('button', { name: 'Revoke Android 2' }).click();
  await page.getByRole('button', { name: 'Revoke for ever' }).click();
  await page.getByRole('table').getByText('revoked').waitFor();
}

async function device_keys_and_api_tokens_come_and_go(reader) {
  const { page } = reader;
  reader.expect(422);
  await page.goto(`/device-keys?project=${PROJECT}`);
  await page.getByRole('button', { name: 'Register a key' }).click();
  await page.getByLabel('Algorithm').selectOption('ES256');
  await page.getByLabel('Key', { exact: true }).fill('no key at all');
  await page.getByRole('button', { name: 'Register', exact: true }).click();
  await page.getByRole('dialog').getByRole('alert').waitFor();
  await reader.look('device-key-refused');
  await page.getByLabel('Algorithm').selectOption('HS256');
  await page.getByLabel('Key', { exact: true }).fill('0123456789abcdef0123456789abcdef0123456789abcdef');
  await page.getByRole('button', { name: 'Register', exact: true }).click();
  await page.getByRole('table').getByText('HS256').waitFor();
  await reader.look('device-keys');

  await page.goto(`/tokens?project=${PROJECT}`);
  await page.getByRole('button', { name: 'New token' }).click();
  await page.getByLabel('Name').fill('CI');
  await page.getByRole('button', { name: 'Make the token' }).click();
  await page.getByTestId('secret').waitFor();
  await page.getByRole('button', { name: 'I have kept it' }).click();
  await reader.look('tokens');
  await page.getByRole('button', { name: 'Revoke CI' }).click();
  await page.getByRole('button', { name: 'Revoke for ever' }).click();
  await page.getByRole('table').getByText('revoked').waitFor();
}

async function somebody_is_invited_and_comes_in(reader, state) {
  const { page } = reader;
  await page.goto(`/people?project=${PROJECT}`);
  await page.getByRole('button', { name: 'Invite a person' }).click();
  await page.getByLabel('E-mail address').fill(OTHER.email);
  await page.getByRole('dialog').getByLabel('Name').fill(OTHER.name);
  await page.getByLabel(`Role in ${PROJECT}`).selectOption('editor');
  await page.getByRole('button', { name: 'Make the invitation' }).click();
  state.link = await page.getByTestId('secret').textContent();
  await page.getByRole('button', { name: 'I have kept it' }).click();
  await page.getByLabel(`Role of ${OTHER.email}`).waitFor();
  await reader.look('people');
}

async function an_editor_sees_what_editors_may(reader, state) {
  const { page, context } = reader;
  reader.expect(401);
  await context.clearCookies();
  await page.goto(state.link);
  await page.getByLabel('Password').fill(OTHER.password);
  await page.getByLabel('The same again').fill(OTHER.password);
  await page.getByRole('button', { name: 'Set password and log in' }).click();
  await page.getByRole('navigation').getByRole('link', { name: 'Ingest keys' }).click();
  await page.getByRole('table').waitFor();
  check(
    (await page.getByRole('button', { name: 'New key' }).count()) === 0,
    'an editor is offered what only admins may',
  );
  await page.getByRole('navigation').getByRole('link', { name: 'Audit log' }).click();
  await page.getByText('For admins of the project').waitFor();
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByRole('heading', { name: 'Log in' }).waitFor();
}

async function the_audit_log_shows_it_all(reader) {
  const { page } = reader;
  await page.goto(`/audit?project=${PROJECT}`);
  const table = page.getByRole('table');
  for (const action of ['project.created', 'ingest_key.created', 'ingest_key.quotas_set', 'ingest_key.revoked']) {
    await table.getByText(action).first().waitFor();
  }
  for (const action of ['device_key.created', 'api_token.created', 'api_token.revoked', 'membership.set']) {
    await table.getByText(action).first().waitFor();
  }
  await table.getByText(ADMIN.email).first().waitFor();
  await reader.look('audit');
  await table.getByText('ingest_key.revoked').first().click();
  await page.waitForURL(/action=ingest_key.revoked/);
  await table.getByText('ingest_key.created').first().waitFor({ state: 'detached' });
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'CSV' }).click();
  check((await download).suggestedFilename() === 'audit-log.csv', 'no file');
}

/** In order: later ones see what earlier ones did. */
export const walks = [
  a_key_is_made_shown_once_rotated_limited_and_revoked,
  device_keys_and_api_tokens_come_and_go,
  somebody_is_invited_and_comes_in,
  an_editor_sees_what_editors_may,
  the_audit_log_shows_it_all,
];
