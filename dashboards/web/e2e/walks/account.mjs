// One's own account, and what admins do with the accounts of others. Has a person of its own, so that it goes by itself.
import { check } from '../reader.mjs';
import { ADMIN, PROJECT } from '../server.mjs';

const CAROL = { email: 'carol@example.com', name: 'Carol Coder', password: 'the first password of carol' };
const CHANGED = 'the second password of carol';
const TOKEN = 'Nightly report';

async function a_person_is_invited_again_and_gets_another_link(reader, state) {
  const { page } = reader;
  await page.goto(`/people?project=${PROJECT}`);
  await page.getByRole('button', { name: 'Invite a person' }).click();
  await page.getByLabel('E-mail address').fill(CAROL.email);
  await page.getByRole('dialog').getByLabel('Name').fill(CAROL.name);
  await page.getByLabel(`Role in ${PROJECT}`).selectOption('admin');
  await page.getByRole('button', { name: 'Make the invitation' }).click();
  const earlier = await linkOf(page);
  await page.getByRole('button', { name: `Invite again: ${CAROL.email}` }).click();
  await reader.look('invite-again');
  await page.getByRole('button', { name: 'Make a new invitation' }).click();
  const latest = await linkOf(page);
  check(earlier !== latest, 'the link is the same');
  state.links = { earlier, latest };
}

async function linkOf(page) {
  const link = await page.getByTestId('secret').textContent();
  await page.getByRole('button', { name: 'I have kept it' }).click();
  return link;
}

async function only_the_last_link_lets_the_person_in(reader, { links }) {
  const { page } = reader;
  reader.expect(401, 404);
  await accept(page, links.earlier);
  await page.getByText('This invitation was used already or is over').waitFor();
  // Only the part behind the # differs: the browser does not load the page anew by itself.
  await page.goto('about:blank');
  await accept(page, links.latest);
  await page.getByRole('link', { name: `Account of ${CAROL.name}` }).waitFor();

  await page.goto(`/tokens?project=${PROJECT}`);
  await page.getByRole('button', { name: 'New token' }).click();
  await page.getByLabel('Name').fill(TOKEN);
  await page.getByRole('button', { name: 'Make the token' }).click();
  const token = await linkOf(page);
  const row = page.getByRole('row', { name: TOKEN });
  await row.getByText(CAROL.email).waitFor();
  check((await row.textContent()).includes('–'), 'a new token was used already');
  // Not by the page, which would send its cookies along.
  const headers = { authorization: `Bearer ${token}` };
  const answer = await fetch(new URL(`/api/v1/projects/${PROJECT}/keys`, page.url()), { headers });
  check(answer.ok, `the token does not work: ${answer.status}`);
  await page.reload();
  await row.getByText('ends in 90 days').waitFor();
  check(!(await row.textContent()).includes('–'), 'the token is shown as never used');
  check((await page.getByRole('button', { name: 'Whole installation' }).count()) === 0, 'only operators see the rest');
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByRole('heading', { name: 'Log in' }).waitFor();
}
only_the_last_link_lets_the_person_in.options = { storageState: undefined };

async function accept(page, link) {
  await page.goto(link);
  await page.getByLabel('Password').fill(CAROL.password);
  await page.getByLabel('The same again').fill(CAROL.password);
  await page.getByRole('button', { name: 'Set password and log in' }).click();
}

async function logIn(page, password) {
  await page.getByLabel('E-mail address').fill(CAROL.email);
  await page.getByLabel('Password').fill(password);
  await page.getByRole('button', { name: 'Log in' }).click();
}

async function the_password_is_changed_and_sessions_end(reader) {
  const { page, context } = reader;
  reader.expect(401);
  await page.goto('/');
  await logIn(page, CAROL.password);
  await page.getByRole('link', { name: `Account of ${CAROL.name}` }).click();
  await page.getByRole('heading', { name: 'Account', exact: true }).waitFor();
  await page.getByRole('table').getByText('This browser').waitFor();
  await reader.look('account');

  const there = await (await context.browser().newContext({ baseURL: page.url() })).newPage();
  await there.goto('/account');
  await logIn(there, CAROL.password);
  await there.getByRole('table').getByText('Another browser').waitFor();
  await page.reload();
  await page.getByRole('button', { name: 'End the session' }).click();
  await page.getByText('Session ended.').waitFor();
  await page.getByText('Another browser').waitFor({ state: 'detached' });
  await there.reload();
  await logIn(there, CAROL.password);
  await there.getByRole('table').getByText('This browser').waitFor();

  const change = page.getByRole('button', { name: 'Change password' });
  await change.click();
  await page.getByText('Enter your present password.').waitFor();
  await page.getByLabel('Present password').fill('a wrong password');
  await page.getByLabel('New password', { exact: true }).fill('too short');
  await change.click();
  await page.getByText('The new password has 9 of at least 12 characters.').waitFor();
  await reader.look('account-faults');
  await page.getByLabel('New password', { exact: true }).fill(CHANGED);
  await page.getByLabel('Repeat the new password').fill('another password');
  await change.click();
  await page.getByText('The two new passwords are not the same.').waitFor();
  await page.getByLabel('Repeat the new password').fill(CHANGED);
  const tries = [];
  page.on('request', (request) => request.url().endsWith('/me/password') && tries.push(request));
  await change.click();
  await page.getByText('The present password is wrong.').waitFor();
  check(tries.length === 1, `a wrong password was sent ${tries.length} times`);
  await page.getByLabel('Present password').fill(CAROL.password);
  await change.click();
  await page.getByText('Password changed.').waitFor();
  await page.reload();
  await page.getByRole('table').getByText('This browser').waitFor();
  await there.reload();
  await logIn(there, CHANGED);
  await there.getByRole('table').getByText('This browser').waitFor();

  await page.getByRole('button', { name: 'Log out everywhere' }).click();
  await reader.look('log-out-everywhere');
  await page.getByRole('dialog').getByRole('button', { name: 'Log out everywhere' }).click();
  await page.getByRole('heading', { name: 'Log in' }).waitFor();
  await there.reload();
  await there.getByRole('heading', { name: 'Log in' }).waitFor();
  await there.context().close();
}
the_password_is_changed_and_sessions_end.options = { storageState: undefined };

async function a_person_is_disabled_and_enabled_and_tokens_are_taken_over(reader) {
  const { page } = reader;
  await page.goto(`/people?project=${PROJECT}`);
  const row = page.getByRole('region', { name: 'All people' }).getByRole('row', { name: CAROL.email });
  await row.getByRole('button', { name: 'Disable' }).click();
  await page.getByText('This person made 1 active API token:').waitFor();
  check(await page.getByLabel('Revoke').isChecked(), 'tokens are revoked unless they are taken over');
  await page.getByLabel('Take over').check();
  await reader.look('disable-person');
  await page.getByRole('dialog').getByRole('button', { name: 'Disable' }).click();
  await row.getByText('disabled', { exact: true }).waitFor();
  await row.getByRole('button', { name: 'Enable' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Enable' }).click();
  await row.getByText('active', { exact: true }).waitFor();
  await row.getByRole('button', { name: 'Disable' }).click();
  await page.getByText('This person made no active API tokens.').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Disable' }).click();
  await row.getByText('disabled', { exact: true }).waitFor();
  await reader.look('people-disabled');

  await page.goto(`/tokens?project=${PROJECT}`);
  await page.getByRole('button', { name: 'Whole installation' }).click();
  await page.waitForURL(/of=installation/);
  const token = page.getByRole('row', { name: TOKEN });
  await token.getByText(ADMIN.email).waitFor();
  await token.getByText('ends in 90 days').waitFor();
  await reader.look('tokens-installation');
  await token.getByRole('button', { name: 'Revoke' }).click();
  await page.getByRole('button', { name: 'Revoke for ever' }).click();
  await token.getByText('revoked').waitFor();
}

async function the_audit_log_of_the_whole_installation(reader) {
  const { page } = reader;
  await page.goto(`/audit?project=${PROJECT}`);
  const table = page.getByRole('table');
  await table.getByText('api_token.revoked').first().waitFor();
  check((await table.getByText('user.enabled').count()) === 0, 'the project has changes of the installation');
  await page.getByRole('button', { name: 'Whole installation' }).click();
  const enabled = table.getByRole('row', { name: 'user.enabled' });
  await enabled.getByRole('cell', { name: 'installation' }).waitFor();
  await table.getByRole('cell', { name: PROJECT, exact: true }).first().waitFor();
  await reader.look('audit-installation');
}

/** In order: later ones see what earlier ones did. */
export const walks = [
  a_person_is_invited_again_and_gets_another_link,
  only_the_last_link_lets_the_person_in,
  the_password_is_changed_and_sessions_end,
  a_person_is_disabled_and_enabled_and_tokens_are_taken_over,
  the_audit_log_of_the_whole_installation,
];
