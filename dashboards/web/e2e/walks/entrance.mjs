// Getting in: the invitation, wrong and right passwords, links to pages, the end of a session.
import { check } from '../reader.mjs';
import { ADMIN, PROJECT } from '../server.mjs';

async function the_first_admin_takes_the_invitation_and_makes_a_project(reader, state) {
  const { page } = reader;
  // The store may still be starting.
  reader.expect(401, 503);
  await page.goto(`/invitation#${state.invitation}`);
  await page.getByLabel('Password').fill(ADMIN.password);
  await page.getByLabel('The same again').fill(ADMIN.password);
  await reader.look('invitation');
  await page.getByRole('button', { name: 'Set password and log in' }).click();
  await page.getByRole('navigation').getByRole('link', { name: 'Projects' }).click();
  await page.getByRole('button', { name: 'New project' }).click();
  await page.getByLabel('Id').fill(PROJECT);
  await page.getByRole('dialog').getByLabel('Name').fill('Shop');
  await page.getByRole('button', { name: 'Make the project' }).click();
  await page.getByRole('heading', { name: `Settings of ${PROJECT}` }).waitFor();
  await page.getByLabel('Events per second', { exact: true }).fill('5000');
  await page.getByRole('button', { name: 'Save settings' }).click();
  await page.getByText('Saved.').waitFor();
  await page.getByRole('cell', { name: '5000' }).waitFor();
  await reader.look('projects');
}

async function a_wrong_password_is_refused_and_a_link_to_a_page_works_after_the_right_one(reader, state) {
  const { page } = reader;
  // The store may still be starting.
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
  await page.getByText('Nothing was saved yet').waitFor();
  check(new URL(page.url()).search.includes('tab=history'), `the link was lost: ${page.url()}`);
  const cookies = await page.context().cookies();
  check(
    cookies.every((cookie) => cookie.httpOnly),
    'scripts can read a cookie',
  );
  state.loggedIn = true;
}
a_wrong_password_is_refused_and_a_link_to_a_page_works_after_the_right_one.keepsSession = true;

async function a_session_goes_on_when_its_access_token_is_over(reader, state) {
  const { page, context } = reader;
  // The store may still be starting.
  reader.expect(401, 503);
  await page.goto(`/keys?project=${PROJECT}`);
  await page.getByRole('heading', { name: 'Ingest keys' }).waitFor();
  // What the browser does after ten minutes.
  await context.clearCookies({ name: '__Host-unjank' });
  const second = await context.newPage();
  await Promise.all([page.reload(), second.goto(`/people?project=${PROJECT}`)]);
  await page.getByRole('heading', { name: 'Ingest keys' }).waitFor();
  await second.getByRole('heading', { name: 'People', exact: true }).waitFor();
  check((await page.getByLabel('Password').count()) === 0, 'the session was lost');
  await second.close();
  state.storage = await context.storageState();
}

/** In order: later ones see what earlier ones did. */
export const walks = [
  the_first_admin_takes_the_invitation_and_makes_a_project,
  a_wrong_password_is_refused_and_a_link_to_a_page_works_after_the_right_one,
  a_session_goes_on_when_its_access_token_is_over,
];
