// Keys, tokens and people, and their changes in the audit log.
import { check } from '../reader.mjs';
import { ADMIN, PROJECT } from '../server.mjs';

const OTHER = { email: 'bob@example.com', name: 'Bob Builder', password: 'a long enough secret' };

async function a_key_is_made_shown_once_rotated_limited_and_revoked(reader, state) {
  const { page } = reader;
  await page.goto(`/keys?project=${PROJECT}`);
  await page.getByText('No keys yet').waitFor();
  await page.getByRole('button', { name: 'New key' }).click();
  await page.getByLabel('Name').fill('Android');
  await page.getByRole('button', { name: 'Create key' }).click();
  state.key = await page.getByTestId('secret').textContent();
  check(state.key.length > 20, `no key: ${state.key}`);
  await reader.look('key-made');
  await page.getByRole('button', { name: 'I saved it' }).click();
  const answer = await page.request.get('/v1/config', { headers: { authorization: `Bearer ${state.key}` } });
  check(answer.ok(), `the key does not work: ${answer.status()}`);

  await page.getByRole('button', { name: 'Quota' }).click();
  await page.getByLabel('Events per second').fill('250');
  await page.getByRole('button', { name: 'Save', exact: true }).click();
  await page.getByText('250 events/s').waitFor();

  await page.getByRole('button', { name: 'Rotate' }).click();
  await page.getByLabel('Name').fill('Android 2');
  await page.getByRole('button', { name: 'Create key' }).click();
  await page.getByRole('button', { name: 'I saved it' }).click();
  await page.getByRole('table').getByText('expires in 30 days').waitFor();
  await reader.look('keys');

  await page.getByRole('button', { name: 'Revoke Android 2' }).click();
  await page.getByRole('button', { name: 'Revoke permanently' }).click();
  await page.getByRole('table').getByText('revoked').waitFor();
}

async function device_keys_and_api_tokens_are_made_and_revoked(reader) {
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
  await page.getByRole('button', { name: 'Create token' }).click();
  await page.getByTestId('secret').waitFor();
  await page.getByRole('button', { name: 'I saved it' }).click();
  await reader.look('tokens');
  await page.getByRole('button', { name: 'Revoke CI' }).click();
  await page.getByRole('button', { name: 'Revoke permanently' }).click();
  await page.getByRole('table').getByText('revoked').waitFor();
}

async function a_person_is_invited_and_logs_in(reader, state) {
  const { page } = reader;
  await page.goto(`/people?project=${PROJECT}`);
  await page.getByRole('button', { name: 'Invite a person' }).click();
  await page.getByLabel('E-mail address').fill(OTHER.email);
  await page.getByRole('dialog').getByLabel('Name').fill(OTHER.name);
  await page.getByLabel(`Role in ${PROJECT}`).selectOption('editor');
  await page.getByRole('button', { name: 'Create invitation' }).click();
  state.link = await page.getByTestId('secret').textContent();
  await page.getByRole('button', { name: 'I saved it' }).click();
  await page.getByLabel(`Role of ${OTHER.email}`).waitFor();
  await reader.look('people');
}

async function an_editor_is_not_offered_what_only_admins_may_do(reader, state) {
  const { page, context } = reader;
  reader.expect(401);
  await context.clearCookies();
  await page.goto(state.link);
  await page.getByLabel('Password', { exact: true }).fill(OTHER.password);
  await page.getByLabel('Repeat the password').fill(OTHER.password);
  await page.getByRole('button', { name: 'Set password and log in' }).click();
  await page.getByRole('navigation').getByRole('link', { name: 'Ingest keys' }).click();
  await page.getByRole('table').waitFor();
  check((await page.getByRole('button', { name: 'New key' }).count()) === 0, 'an editor is offered to make a key');
  await page.getByRole('navigation').getByRole('link', { name: 'Audit log' }).click();
  await page.getByText('Only admins of the project can see').waitFor();
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByRole('heading', { name: 'Log in' }).waitFor();
}

async function the_audit_log_shows_all_of_these_changes(reader) {
  const { page } = reader;
  await page.goto(`/audit?project=${PROJECT}`);
  const entries = page.getByRole('main').getByRole('listitem');
  for (const sentence of [
    'created project Shop',
    'created ingest key Android',
    'changed the quotas of ingest key Android',
    'revoked ingest key Android 2',
    'registered device key HS256',
    'created API token CI as',
    'revoked API token CI',
    `set the role of ${OTHER.name} to editor`,
  ]) {
    await entries.filter({ hasText: sentence }).first().waitFor();
  }
  await reader.look('audit');
  const revoked = entries.filter({ hasText: 'revoked ingest key Android 2' });
  await revoked.getByRole('button', { name: 'Details' }).click();
  await revoked.getByText('ingest_key.revoked').waitFor();
  await revoked.getByRole('button', { name: 'Filter: only changes of Android 2' }).click();
  await page.waitForURL(/subject=/);
  await entries.filter({ hasText: 'created project' }).waitFor({ state: 'detached' });
  await entries.filter({ hasText: 'created ingest key Android 2' }).waitFor();
  await entries.first().getByRole('button', { name: ADMIN.name }).click();
  await page.waitForURL(/actor=user/);
  await entries.first().waitFor();
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'CSV' }).click();
  check((await download).suggestedFilename() === 'audit-log.csv', 'no file');
}

/** In this order, because later walks depend on earlier ones. */
export const walks = [
  a_key_is_made_shown_once_rotated_limited_and_revoked,
  device_keys_and_api_tokens_are_made_and_revoked,
  a_person_is_invited_and_logs_in,
  an_editor_is_not_offered_what_only_admins_may_do,
  the_audit_log_shows_all_of_these_changes,
];
