// Logins with an identity provider, whose groups grant and revoke roles.
import { check } from '../reader.mjs';
import { ADMIN, PROJECT } from '../server.mjs';

const DORA = { name: 'Dora Developer', email: 'dora@example.com', email_verified: true, groups: ['developers'] };

async function continueWithAcme(page, name) {
  await page.getByRole('link', { name: 'Continue with Acme' }).click();
  await page.getByRole('heading', { name: 'Log in at Acme' }).waitFor();
  await page.getByLabel('Name').fill(name);
  await page.getByRole('button', { name: 'Continue' }).click();
}

async function adminLogsIn(page) {
  await page.getByLabel('E-mail address').fill(ADMIN.email);
  await page.getByLabel('Password').fill(ADMIN.password);
  await page.getByRole('button', { name: 'Log in', exact: true }).click();
}

async function me(page) {
  return page.evaluate(() => fetch('/api/v1/me').then((answer) => answer.json()));
}

async function an_admin_with_a_password_makes_the_project(reader, { sso }) {
  const { page } = reader;
  reader.expect(401, 503);
  await page.goto(`/invitation#${sso.invitation}`);
  await page.getByLabel('Password', { exact: true }).fill(ADMIN.password);
  await page.getByLabel('Repeat the password').fill(ADMIN.password);
  await page.getByRole('button', { name: 'Set password and log in' }).click();
  await page.getByRole('navigation').getByRole('link', { name: 'Projects' }).click();
  await page.getByRole('button', { name: 'New project' }).click();
  await page.getByLabel('Id').fill(PROJECT);
  await page.getByRole('dialog').getByLabel('Name').fill('Shop');
  await page.getByRole('button', { name: 'Create project' }).click();
  await page.getByRole('heading', { name: `Settings of ${PROJECT}` }).waitFor();
}

async function a_person_logs_in_with_the_provider_and_has_the_role_of_their_group(reader, state) {
  const { page, context } = reader;
  const { people } = state.sso.provider;
  people.set('dora', DORA);
  // ClickHouse may still be starting.
  reader.expect(401, 503);
  await page.goto(`/config?project=${PROJECT}&tab=history`);
  await page.getByRole('link', { name: 'Continue with Acme' }).waitFor();
  await reader.look('login-with-provider');
  await continueWithAcme(page, 'dora');
  await page.getByText('No revisions yet').waitFor();
  check(page.url().endsWith(`/config?project=${PROJECT}&tab=history`), `another page was opened: ${page.url()}`);
  const first = await me(page);
  check(first.roles.length === 1 && first.roles[0].role === 'editor', `roles: ${JSON.stringify(first.roles)}`);
  const names = (await context.cookies(page.url())).map(({ name }) => name).filter((name) => name.includes('unjank'));
  check(!names.includes('__Host-unjank-oidc'), 'the attempt was kept');
  // The browser has the strict cookie, although another site started the redirect.
  await context.clearCookies({ name: '__Host-unjank' });
  await page.reload();
  await page.getByText('No revisions yet').waitFor();
  await page.getByRole('link', { name: `Account of ${DORA.name}` }).click();
  await page.getByText('You log in with Acme.').waitFor();
  check((await page.getByRole('button', { name: 'Change password' }).count()) === 0, 'a password can be changed');
  await reader.look('account-with-provider');

  await page.getByRole('button', { name: 'Log out', exact: true }).click();
  await page.getByRole('heading', { name: 'Log in' }).waitFor();
  people.set('dora', { ...DORA, email: 'dora.new@example.com', groups: ['leads'] });
  // The provider has its own session, so the person types nothing again.
  await page.getByRole('link', { name: 'Continue with Acme' }).click();
  await page.getByRole('link', { name: `Account of ${DORA.name}` }).waitFor();
  const second = await me(page);
  check(second.id === first.id, 'the second login is another person');
  check(second.email === DORA.email, `the address is ${second.email}`);
  check(second.roles[0].role === 'admin', `roles: ${JSON.stringify(second.roles)}`);
  state.dora = await context.storageState();
}
a_person_logs_in_with_the_provider_and_has_the_role_of_their_group.options = { storageState: undefined };

async function a_person_without_a_group_has_no_access(reader, { sso, dora }) {
  const { page, context } = reader;
  const { people } = sso.provider;
  reader.expect(401, 503);
  // The earlier session must end.
  const before = await (await context.browser().newContext({ baseURL: sso.url, storageState: dora })).newPage();
  await before.goto('/account');
  await before.getByRole('heading', { name: 'Account', exact: true }).waitFor();
  people.set('dora', { ...DORA, groups: [] });
  await page.goto('/');
  await continueWithAcme(page, 'dora');
  await page.getByText('The identity provider gives you no access to unjank.').waitFor();
  await reader.look('login-without-role');
  await before.reload();
  await before.getByRole('heading', { name: 'Log in' }).waitFor();
  await before.context().close();

  people.set('eve', { name: 'Eve', email: ADMIN.email, email_verified: false, groups: ['developers'] });
  await context.clearCookies();
  await page.goto('/');
  await continueWithAcme(page, 'eve');
  await page.getByText('The identity provider did not confirm your e-mail address.').waitFor();
  // Passwords still work, and the error code disappears from the URL.
  await adminLogsIn(page);
  await page.getByRole('link', { name: `Account of ${ADMIN.name}` }).waitFor();
  check(!page.url().includes('login_error'), `the fault is still in the address: ${page.url()}`);
}
a_person_without_a_group_has_no_access.options = { storageState: undefined };

async function a_disabled_person_is_refused(reader, { sso }) {
  const { page, context } = reader;
  reader.expect(401, 503);
  await page.goto(`/people?project=${PROJECT}`);
  await adminLogsIn(page);
  const row = page.getByRole('region', { name: 'All people' }).getByRole('row', { name: DORA.email });
  await row.getByText('active', { exact: true }).waitFor();
  await row.getByRole('button', { name: 'Disable' }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Disable' }).click();
  await row.getByText('disabled', { exact: true }).waitFor();
  await page.goto(`/audit?project=${PROJECT}`);
  await page
    .getByRole('listitem')
    .filter({ hasText: 'removed the role of' })
    .getByText(`the server (openid-connect ${sso.provider.issuer})`)
    .waitFor();
  sso.provider.people.set('dora', DORA);
  await context.clearCookies();
  await page.goto('/');
  await continueWithAcme(page, 'dora');
  await page.getByText('Your account is disabled.').waitFor();
  check(sso.provider.errors.length === 0, sso.provider.errors.join('\n'));
}
a_disabled_person_is_refused.options = { storageState: undefined };

/** In this order, because later walks depend on earlier ones. */
export const walks = [
  an_admin_with_a_password_makes_the_project,
  a_person_logs_in_with_the_provider_and_has_the_role_of_their_group,
  a_person_without_a_group_has_no_access,
  a_disabled_person_is_refused,
];
