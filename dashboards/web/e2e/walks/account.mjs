// The own account, and the accounts of others as an admin. Creates its own person, so that it can run alone.
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
  await page.getByRole('button', { name: 'Create invitation' }).click();
  const earlier = await linkOf(page);
  await page.getByRole('button', { name: `Invite again: ${CAROL.email}` }).click();
  await reader.look('invite-again');
  await page.getByRole('button', { name: 'Create invitation' }).click();
  const latest = await linkOf(page);
  check(earlier !== latest, 'the link is the same');
  state.links = { earlier, latest };
}

async function an_open_link_is_listed_and_cancelled_and_a_password_is_reset(reader) {
  const { page } = reader;
  await page.goto(`/people?project=${PROJECT}`);
  await page.getByRole('button', { name: 'Invite a person' }).click();
  await page.getByLabel('E-mail address').fill('erin@example.com');
  await page.getByRole('dialog').getByLabel('Name').fill('Erin');
  await page.getByRole('button', { name: 'Create invitation' }).click();
  await linkOf(page);
  const erin = page.getByRole('table', { name: 'All people' }).getByRole('row', { name: /erin@example.com/ });
  await erin.getByText('invited, expires in 7 days').waitFor();
  await erin.getByRole('button', { name: 'Cancel link' }).click();
  await reader.look('cancel-invitation');
  await page.getByRole('button', { name: 'Cancel the link' }).click();
  await erin.getByText('no invitation').waitFor();
  check((await erin.getByRole('button', { name: 'Cancel link' }).count()) === 0, 'a cancelled link can be cancelled');
  await page.getByRole('button', { name: `Reset password: ${ADMIN.email}` }).click();
  await page.getByRole('button', { name: 'Create a password link' }).click();
  await linkOf(page);
  const ann = page.getByRole('table', { name: 'All people' }).getByRole('row', { name: new RegExp(ADMIN.email) });
  await ann.getByText('password link expires in 7 days').waitFor();
  await reader.look('people-links');
  await ann.getByRole('button', { name: 'Cancel link' }).click();
  await page.getByRole('button', { name: 'Cancel the link' }).click();
  await ann.getByText('password link').waitFor({ state: 'detached' });
}

async function linkOf(page) {
  const link = await page.getByTestId('secret').textContent();
  await page.getByRole('button', { name: 'I saved it' }).click();
  return link;
}

async function only_the_last_link_works(reader, { links }) {
  const { page } = reader;
  reader.expect(401, 404);
  await accept(page, links.earlier);
  await page.getByText('This link was already used, has expired or was cancelled').waitFor();
  // The URLs differ only after the #, so the browser would not reload the page.
  await page.goto('about:blank');
  await accept(page, links.latest);
  await page.getByRole('link', { name: `Account of ${CAROL.name}` }).waitFor();

  await page.goto(`/tokens?project=${PROJECT}`);
  await page.getByRole('button', { name: 'New token' }).click();
  await page.getByLabel('Name').fill(TOKEN);
  await page.getByRole('button', { name: 'Create token' }).click();
  const token = await linkOf(page);
  const row = page.getByRole('row', { name: TOKEN });
  await row.getByText(CAROL.email).waitFor();
  check((await row.textContent()).includes('–'), 'a new token is shown as used');
  // Not from the page, which would also send its cookies.
  const headers = { authorization: `Bearer ${token}` };
  const answer = await fetch(new URL(`/api/v1/projects/${PROJECT}/keys`, page.url()), { headers });
  check(answer.ok, `the token does not work: ${answer.status}`);
  await page.reload();
  await row.getByText('expires in 90 days').waitFor();
  check(!(await row.textContent()).includes('–'), 'the token is shown as never used');
  check(
    (await page.getByRole('button', { name: 'Whole installation' }).count()) === 0,
    'a project admin is offered the whole installation',
  );
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.getByRole('heading', { name: 'Log in' }).waitFor();
}
only_the_last_link_works.options = { storageState: undefined };

async function accept(page, link) {
  await page.goto(link);
  await page.getByLabel('Password', { exact: true }).fill(CAROL.password);
  await page.getByLabel('Repeat the password').fill(CAROL.password);
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
  await page.getByText('Enter your current password.').waitFor();
  await page.getByLabel('Current password').fill('a wrong password');
  await page.getByLabel('New password', { exact: true }).fill('too short');
  await change.click();
  await page.getByText('The new password is too short: 9 of at least 12 characters.').waitFor();
  await reader.look('account-faults');
  await page.getByLabel('New password', { exact: true }).fill(CHANGED);
  await page.getByLabel('Repeat the new password').fill('another password');
  await change.click();
  await page.getByText('The two new passwords do not match.').waitFor();
  await page.getByLabel('Repeat the new password').fill(CHANGED);
  const tries = [];
  page.on('request', (request) => request.url().endsWith('/me/password') && tries.push(request));
  await change.click();
  await page.getByText('The current password is wrong.').waitFor();
  check(tries.length === 1, `a wrong password was sent ${tries.length} times`);
  await page.getByLabel('Current password').fill(CAROL.password);
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
  await page.getByText('This person created 1 active API token:').waitFor();
  check(await page.getByLabel('Revoke').isChecked(), 'revoking tokens is not the default');
  await page.getByLabel('Take over').check();
  await reader.look('disable-person');
  await page.getByRole('dialog').getByRole('button', { name: 'Disable' }).click();
  await row.getByText('disabled', { exact: true }).waitFor();
  await row.getByRole('button', { name: 'Enable' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Enable' }).click();
  await row.getByText('active', { exact: true }).waitFor();
  await row.getByRole('button', { name: 'Disable' }).click();
  await page.getByText('This person created no active API tokens.').waitFor();
  await page.getByRole('dialog').getByRole('button', { name: 'Disable' }).click();
  await row.getByText('disabled', { exact: true }).waitFor();
  await reader.look('people-disabled');

  await page.goto(`/tokens?project=${PROJECT}`);
  await page.getByRole('button', { name: 'Whole installation' }).click();
  await page.waitForURL(/of=installation/);
  const token = page.getByRole('row', { name: TOKEN });
  await token.getByText(ADMIN.email).waitFor();
  await token.getByText('expires in 90 days').waitFor();
  await reader.look('tokens-installation');
  await token.getByRole('button', { name: 'Revoke' }).click();
  await page.getByRole('button', { name: 'Revoke permanently' }).click();
  await token.getByText('revoked').waitFor();
}

async function the_audit_log_of_the_whole_installation(reader) {
  const { page } = reader;
  await page.goto(`/audit?project=${PROJECT}`);
  const entries = page.getByRole('main').getByRole('listitem');
  await entries.filter({ hasText: 'revoked API token' }).first().waitFor();
  check((await page.getByText(' enabled ').count()) === 0, 'the log of the project lists changes of the installation');
  await page.getByRole('button', { name: 'Whole installation' }).click();
  const enabled = entries.filter({ hasText: / enabled / });
  await enabled.getByText('installation', { exact: true }).waitFor();
  await entries.getByText(PROJECT, { exact: true }).first().waitFor();
  await reader.look('audit-installation');
}

/** In this order, because later walks depend on earlier ones. */
export const walks = [
  a_person_is_invited_again_and_gets_another_link,
  an_open_link_is_listed_and_cancelled_and_a_password_is_reset,
  only_the_last_link_works,
  the_password_is_changed_and_sessions_end,
  a_person_is_disabled_and_enabled_and_tokens_are_taken_over,
  the_audit_log_of_the_whole_installation,
];
