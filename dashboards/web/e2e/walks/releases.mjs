// Releases on the demo: marks on charts, the list of versions, the page of a version, and shares of active installs.
import { about, count } from '../figures.mjs';
import { shiftFault, watchShifts } from '../layout_shift.mjs';
import { check } from '../reader.mjs';

const [LATEST, BEFORE, FIRST] = ['4.12.0', '4.11.0', '4.10.0'];
const DAY_MS = 86_400_000;
const midnight = Math.floor(Date.now() / DAY_MS) * DAY_MS;
const period = (days) =>
  ['from', 'to']
    .map((name, end) => `${name}=${new Date(midnight - (1 - end) * days * DAY_MS).toISOString()}`)
    .join('&');
const [MONTH, WEEK] = [period(30), period(7)];
const NEW_JANK = 'database on main thread in OrderDao.insert';
const DAY = new Intl.DateTimeFormat('en-GB', { day: 'numeric', month: 'short', timeZone: 'UTC' });

async function open(reader, path, title) {
  await reader.page.goto(path);
  await reader.page.getByRole('heading', { level: 1, name: title }).waitFor();
  await reader.settled();
}

/** The day on which the first batch of a version arrived. The demo rolls out its versions at once. */
async function firstDay(state, version) {
  const [row] = await state.demo.sql(
    `SELECT toUnixTimestamp(min(hour)) AS at FROM usage_hourly WHERE project = 'shop' AND app_version = '${version}'`,
  );
  return DAY.format(Number(row.at) * 1000);
}

async function charts_over_time_mark_where_a_version_began_to_reach_users(reader, state) {
  const { page } = reader;
  let asked = 0;
  page.on('request', (request) => (asked += /\/projects\/shop\/versions$/.test(request.url()) ? 1 : 0));
  const day = await firstDay(state, LATEST);
  await open(reader, `/?${MONTH}`, 'Overview');
  for (const chart of ['Share of sessions by version', 'Slow frames by version', 'Janks per hour of use, by version']) {
    const marks = page.getByRole('region', { name: chart }).getByRole('list', { name: 'Releases' });
    const names = await marks.getByRole('link').allInnerTexts();
    check(names.length === 2, `${chart} marks ${names.join('; ')}`);
    check(
      names.some((name) => name.startsWith(LATEST) && name.includes(day)),
      `${chart} does not mark ${LATEST} on ${day}, but ${names.join('; ')}`,
    );
    // This version was in use when the data begins.
    check(!names.some((name) => name.startsWith(FIRST)), `${chart} marks ${FIRST}`);
  }
  check(asked === 1, `the charts ask ${asked} times for the versions`);

  await open(reader, `/frames?${MONTH}`, 'Frames');
  const chart = page.getByRole('region', { name: 'Slow frames over time' });
  await chart.getByRole('button', { name: 'Show as table' }).click();
  await chart.getByRole('columnheader', { name: 'Released' }).waitFor();
  const rows = chart.locator('tbody tr').filter({ has: page.getByRole('cell', { name: LATEST, exact: true }) });
  check(
    (await rows.count()) === 1 && (await rows.innerText()).includes(day),
    'the table has not one row with the release',
  );

  await open(reader, `/traffic?${MONTH}`, 'Traffic');
  const bars = page.getByRole('region', { name: 'Bytes by day' });
  await bars.getByRole('list', { name: 'Releases' }).getByRole('link', { name: BEFORE }).waitFor();
  await bars.getByRole('list', { name: 'Releases' }).getByRole('link', { name: LATEST }).click();
  await page.waitForURL((url) => url.pathname === `/versions/${LATEST}`);
  check(asked === 3, `three loads of the interface ask ${asked} times for the versions`);
}

async function versions_are_listed_with_their_share_of_installs(reader, state) {
  const { page } = reader;
  await open(reader, `/?${WEEK}`, 'Overview');
  await page.getByRole('navigation').getByRole('link', { name: 'Versions' }).click();
  await page.getByRole('heading', { level: 1, name: 'Versions' }).waitFor();
  await reader.settled();
  const table = page.getByRole('table', { name: 'Versions' });
  const names = await table.locator('tbody td:first-child').allInnerTexts();
  check(names[0] === LATEST && names[1] === BEFORE, `not the newest first: ${names}`);
  const within = `received_at >= fromUnixTimestamp(${(midnight - 7 * DAY_MS) / 1000}) AND received_at < fromUnixTimestamp(${midnight / 1000})`;
  const [used] = await state.demo.sql(
    `SELECT uniqExactIf(install_id, app_version = '${LATEST}') AS installs, uniqExact(install_id) AS all FROM batches WHERE ${within}`,
  );
  const cells = await table.locator('tbody tr').first().locator('td').allInnerTexts();
  count(cells[1], Number(used.installs), `installs of ${LATEST}`);
  about(cells[2], used.installs / used.all, `share of ${LATEST}`, 0.03);
  check(cells[5].includes(await firstDay(state, LATEST)), `reached users: ${cells[5]}`);
  await reader.look('versions');
}

async function a_version_has_a_page_with_its_changes_and_copies_them(reader, state) {
  const { page } = reader;
  await watchShifts(page);
  await open(reader, `/versions?${MONTH}`, 'Versions');
  await page.getByRole('link', { name: LATEST, exact: true }).first().click();
  await page.getByRole('heading', { level: 1, name: `Version ${LATEST}` }).waitFor();
  await reader.settled();
  reader.faults.push(...(await shiftFault(page, 'the page of a version')));
  await page.getByRole('region', { name: 'Adoption' }).getByRole('img').waitFor();
  const worse = page.getByRole('region', { name: 'What changed' });
  const spans = await worse.getByRole('link', { name: 'checkout', exact: true }).getAttribute('href');
  check(spans.includes(`app_version=${LATEST}`) && spans.includes(`base_app_version=${BEFORE}`), spans);
  const fresh = page.getByRole('region', { name: 'New jank groups' });
  await fresh.getByRole('link', { name: NEW_JANK }).waitFor();
  await page.getByRole('region', { name: 'Open incidents', exact: true }).waitFor();
  await page.getByRole('region', { name: 'Missing symbols' }).getByText('Every stack is readable').waitFor();
  await reader.look('version');

  await reader.context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await page.getByRole('button', { name: 'Copy as Markdown' }).click();
  await page.getByText('Copied as Markdown.').waitFor();
  const text = await page.evaluate(() => navigator.clipboard.readText());
  for (const part of [`## Version ${LATEST}`, `Compared with ${BEFORE}`, '| new | Jank |', 'checkout', ' installs)'])
    check(text.includes(part), `the Markdown lacks "${part}": ${text}`);
  check(text.includes(`${state.demo.url}/versions/${LATEST}?`), `no link to the version: ${text}`);

  await worse.getByRole('button', { name: /better/ }).click();
  await page.getByRole('heading', { name: 'What got better' }).waitFor();
  await fresh.getByRole('link', { name: NEW_JANK }).click();
  await page.getByRole('heading', { level: 1, name: NEW_JANK }).waitFor();
}

async function a_version_without_data_in_the_period_leads_to_its_time(reader) {
  const { page } = reader;
  await open(
    reader,
    `/versions/${LATEST}?${period(30).replace(/to=.*/, `to=${new Date(midnight - 25 * DAY_MS).toISOString()}`)}`,
    /Version/,
  );
  await page.getByText(`No device used ${LATEST} in this period`).waitFor();
  await page.getByRole('link', { name: 'Show the period in which the version was used' }).click();
  await page.getByRole('region', { name: 'Adoption' }).waitFor();
  await open(reader, `/versions/9.9.9?${MONTH}`, 'Version 9.9.9');
  await page.getByText('No device sent data with this version').waitFor();
}

async function installs_have_their_share_of_active_installs(reader, state) {
  const { page } = reader;
  const filters = `app_version=${LATEST}`;
  await open(reader, `/jank?${WEEK}&${filters}`, 'Jank');
  const within = (column) =>
    `${column} >= fromUnixTimestamp(${(midnight - 7 * DAY_MS) / 1000}) AND ${column} < fromUnixTimestamp(${midnight / 1000})`;
  const [active] = await state.demo.sql(
    `SELECT uniqExact(install_id) AS installs FROM batches WHERE app_version = '${LATEST}' AND ${within('received_at')}`,
  );
  const [group] = await state.demo.sql(
    `SELECT uniqExact(install_id) AS installs FROM janks INNER JOIN stack_class_current AS class USING (project, stack_hash)
     WHERE class.title = '${NEW_JANK}' AND app_version = '${LATEST}' AND ${within('start')}`,
  );
  const row = page.getByRole('table', { name: 'Jank groups' }).locator('tbody tr').filter({ hasText: NEW_JANK });
  const share = row.locator('.share').filter({ hasText: /\d/ }).first();
  about(await share.innerText(), group.installs / active.installs, 'share of active installs', 0.03);
  await row.getByRole('link', { name: NEW_JANK }).click();
  await page.getByRole('heading', { level: 1, name: NEW_JANK }).waitFor();
  await reader.settled();
  const card = page.locator('.card').filter({ hasText: 'Affected installs' });
  const text = await card.getByText(/of [\d.]+ (k )?installs/).innerText();
  about(text, group.installs / active.installs, 'share on the page of the group', 0.03);

  // Batches do not name pages, so there is no share, and the heading says why.
  await open(reader, `/jank?${WEEK}&${filters}&page=CheckoutActivity`, 'Jank');
  const heading = page.getByRole('columnheader', { name: 'Installs' });
  check(
    (await heading.getAttribute('title')).includes('unknown'),
    'the heading does not say that the share is unknown',
  );
  check((await page.locator('td .share').count()) === 0, 'a share of unknown installs');
}

export const walks = [
  charts_over_time_mark_where_a_version_began_to_reach_users,
  versions_are_listed_with_their_share_of_installs,
  a_version_has_a_page_with_its_changes_and_copies_them,
  a_version_without_data_in_the_period_leads_to_its_time,
  installs_have_their_share_of_active_installs,
];
