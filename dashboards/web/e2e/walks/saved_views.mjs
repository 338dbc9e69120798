// Saved views: save a page with its filters, open, replace, rename and delete the view, as an editor and as a viewer.
import { check } from '../reader.mjs';
import { PROJECT } from '../server.mjs';

const VERA = { email: 'vera@example.com', name: 'Vera Viewer', password: 'the password of vera' };

async function save(page, name, action = 'Save') {
  await page.getByRole('button', { name: 'Save view' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByLabel('Name', { exact: true }).fill(name);
  await dialog.getByRole('button', { name: action, exact: true }).click();
  await dialog.waitFor({ state: 'hidden' });
}

async function a_page_with_its_filters_is_saved_and_opened_as_a_view(reader) {
  const { page } = reader;
  await page.goto(`/jank?project=${PROJECT}&range=24h&app_version=4.12.0&kind=anr`);
  await page.getByRole('heading', { level: 1, name: 'Jank' }).waitFor();
  await page.getByRole('button', { name: 'Save view' }).click();
  await page.getByText('Jank, last 24 hours, 1 filter').waitFor();
  await reader.look('view-saving');
  await page.keyboard.press('Escape');
  await save(page, 'ANRs of a day');
  await page.getByText('View saved.').waitFor();
  await page.getByRole('button', { name: 'View: ANRs of a day' }).waitFor();

  await page.getByRole('navigation').getByRole('link', { name: 'Frames' }).click();
  await page.getByRole('heading', { level: 1, name: 'Frames' }).waitFor();
  await page.goto(`/frames?project=${PROJECT}&range=30d`);
  await page.getByRole('button', { name: 'Saved views' }).click();
  await page.getByRole('option', { name: /ANRs of a day.*Jank/ }).waitFor();
  await reader.look('views');
  await page.getByRole('option', { name: 'ANRs of a day' }).click();
  await page.waitForURL(/\/jank\?/);
  const query = new URL(page.url()).searchParams;
  const expected = { project: PROJECT, range: '24h', app_version: '4.12.0', kind: 'anr' };
  for (const [name, value] of Object.entries(expected)) {
    check(query.get(name) === value, `${name} is ${query.get(name)}, not ${value}`);
  }
  check([...query].length === 4, `the view has other parameters: ${query}`);
}

async function a_view_is_replaced_renamed_and_deleted(reader) {
  const { page } = reader;
  reader.expect(409);
  await page.goto(`/frames?project=${PROJECT}&range=30d`);
  await save(page, 'Frames of a month');
  await page.getByText('View saved.').waitFor();
  await page.goto(`/frames?project=${PROJECT}&range=90d`);
  await save(page, 'Frames of a month', 'Replace');
  await page.getByText('View replaced.').waitFor();
  await page.getByRole('button', { name: 'View: Frames of a month' }).click();
  await page.getByRole('option', { name: 'Rename or delete…' }).click();
  const dialog = page.getByRole('dialog');
  await dialog.getByText('Frames, last 90 days').waitFor();
  await dialog.getByRole('button', { name: 'Rename Frames of a month' }).click();
  await dialog.getByLabel('Name', { exact: true }).fill('ANRs of a day');
  await dialog.getByRole('button', { name: 'Rename', exact: true }).click();
  await dialog.getByText('Another view has this name.').waitFor();
  await reader.look('view-name-taken');
  await dialog.getByLabel('Name', { exact: true }).fill('Frames of a quarter');
  await dialog.getByRole('button', { name: 'Rename', exact: true }).click();
  await dialog.getByRole('link', { name: 'Frames of a quarter' }).waitFor();
  await dialog.getByRole('button', { name: 'Delete Frames of a quarter' }).click();
  await dialog.getByText('Delete this view for all people of the project?').waitFor();
  await reader.look('view-deleting');
  await dialog.getByRole('button', { name: 'Delete', exact: true }).click();
  await dialog.getByRole('link', { name: 'Frames of a quarter' }).waitFor({ state: 'detached' });
  await dialog.getByRole('button', { name: 'Close' }).click();
  await page.getByRole('button', { name: 'Saved views' }).waitFor();
  await page.goto(`/audit?project=${PROJECT}&action=saved_view.deleted`);
  await page.getByText('Frames of a quarter').first().waitFor();
}

async function a_viewer_is_invited(reader, state) {
  const { page } = reader;
  await page.goto(`/people?project=${PROJECT}`);
  await page.getByRole('button', { name: 'Invite a person' }).click();
  await page.getByLabel('E-mail address').fill(VERA.email);
  await page.getByRole('dialog').getByLabel('Name').fill(VERA.name);
  await page.getByLabel(`Role in ${PROJECT}`).selectOption('viewer');
  await page.getByRole('button', { name: 'Create invitation' }).click();
  state.veraLink = await page.getByTestId('secret').textContent();
}

async function a_viewer_opens_views_and_changes_none(reader, { veraLink }) {
  const { page } = reader;
  reader.expect(401);
  await page.goto(veraLink);
  await page.getByLabel('Password', { exact: true }).fill(VERA.password);
  await page.getByLabel('Repeat the password').fill(VERA.password);
  await page.getByRole('button', { name: 'Set password and log in' }).click();
  await page.getByRole('button', { name: 'Saved views' }).click();
  await page.getByRole('option', { name: 'ANRs of a day' }).waitFor();
  check((await page.getByRole('option', { name: 'Rename or delete…' }).count()) === 0, 'a viewer may change views');
  check((await page.getByRole('button', { name: 'Save view' }).count()) === 0, 'a viewer may save views');
  await page.getByRole('option', { name: 'ANRs of a day' }).click();
  await page.waitForURL(/\/jank\?.*kind=anr/);
  await page.getByRole('button', { name: 'View: ANRs of a day' }).waitFor();
}
a_viewer_opens_views_and_changes_none.options = { storageState: undefined };

async function views_on_a_narrow_dark_screen(reader) {
  const { page } = reader;
  await page.goto(`/frames?project=${PROJECT}`);
  await page.getByRole('button', { name: 'Filters', exact: true }).click();
  await page.getByRole('button', { name: 'Saved views' }).click();
  await page.getByRole('option', { name: 'ANRs of a day' }).waitFor();
  await reader.look('views-narrow-dark');
  await reader.overflow('views-narrow-dark');
  await page.getByRole('option', { name: 'Rename or delete…' }).click();
  await page.getByRole('dialog').getByText('Jank, last 24 hours, 1 filter').waitFor();
  await reader.look('views-manage-narrow-dark');
  await reader.overflow('views-manage-narrow-dark');
}
views_on_a_narrow_dark_screen.options = { viewport: { width: 400, height: 800 }, colorScheme: 'dark' };

/** In this order, because later walks depend on earlier ones. */
export const walks = [
  a_page_with_its_filters_is_saved_and_opened_as_a_view,
  a_view_is_replaced_renamed_and_deleted,
  a_viewer_is_invited,
  a_viewer_opens_views_and_changes_none,
  views_on_a_narrow_dark_screen,
];
