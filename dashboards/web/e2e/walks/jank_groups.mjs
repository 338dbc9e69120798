// A jank group gets an owner, is resolved, and comes back in a later version. Creates its own project.
import { randomUUID } from 'node:crypto';
import { check } from '../reader.mjs';

const DESK = 'desk';
const TEAM = 'team-desk';
const HOSTILE = '<img src=x onerror=alert(1)>';
const at = (page, query) => `/${page}?project=${DESK}${query ? `&${query}` : ''}`;

function batch(app_version) {
  const start = new Date(Date.now() - 600_000).toISOString();
  const jank = (name) => ({
    ...{ start, duration_ms: 3000, kind: 'jank', thread: 'main', foreground: true, page: 'Desk', uptime_ms: 60_000 },
    strategy: { threshold_ms: 2000, count: 1 },
    stack: [
      { class: 'android.database.sqlite.SQLiteStatement', function: 'executeInsert' },
      { class: 'com.example.desk.Drawer', function: name, file: 'Drawer.kt', line: 12 },
      { class: 'android.os.Looper', function: 'loop' },
    ],
  });
  return {
    batch_id: randomUUID(),
    session_id: randomUUID(),
    resource: { app_id: 'com.example.desk', app_version, install_id: randomUUID(), os_name: 'android' },
    janks: [jank('open'), jank('close')],
  };
}

async function until(page, path, isDone) {
  let last;
  for (let tries = 0; tries < 240; tries += 1) {
    const answer = await page.request.get(`/api/v1/projects/${DESK}/${path}`);
    last = await answer.text();
    if (answer.ok() && isDone(JSON.parse(last))) return JSON.parse(last);
    await page.waitForTimeout(250);
  }
  throw new Error(`${path} stays ${last}`);
}

async function send(page, key, version) {
  const headers = { authorization: `Bearer ${key}` };
  for (let tries = 0; tries < 50 && !(await page.request.get('/v1/config', { headers })).ok(); tries += 1) {
    await page.waitForTimeout(100);
  }
  const answer = await page.request.post('/v1/ingest', { headers, data: batch(version) });
  check(answer.status() === 202, `a batch was rejected: ${answer.status()} ${await answer.text()}`);
}

const groups = (page) => page.getByRole('table', { name: 'Jank groups' });

async function an_owner_is_assigned_to_a_group_of_janks(reader, state) {
  const { page } = reader;
  const made = await page.request.post('/api/v1/projects', { data: { id: DESK, name: 'Desk' } });
  check(made.ok(), `no project: ${made.status()} ${await made.text()}`);
  const key = await page.request.post(`/api/v1/projects/${DESK}/keys`, { data: { name: 'Desks' } });
  state.deskKey = (await key.json()).key;
  await send(page, state.deskKey, '4.9.0');
  await until(page, 'query/janks?by=title&measure=count', ({ rows }) => rows.length === 2);
  await page.goto(at('jank'));
  await page.getByRole('link', { name: /Drawer\.open/ }).click();
  await page.getByRole('button', { name: 'Assign owner…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Assign an owner' });
  await dialog.getByLabel('Owner').fill(TEAM);
  await dialog.getByRole('button', { name: 'Show the rule' }).click();
  await dialog.getByText('com.example.desk.Drawer.open').waitFor();
  const rule = await dialog.locator('pre').innerText();
  check(rule.includes('glob = "com.example.desk.Drawer"') && rule.includes(`owner = "${TEAM}"`), `the rule is ${rule}`);
  await reader.look('jank-owner-rule');
  await dialog.getByRole('button', { name: 'Save rule' }).click();
  await page.getByText('Saved as revision 1 of the').waitFor();
  await page.getByText('All stored stacks are classified by these rules').waitFor();
  await page.locator('dl').getByText(TEAM).waitFor();
  await page.getByRole('button', { name: 'Change owner…' }).waitFor();
  await reader.look('jank-owner');
  state.deskGroup = new URL(page.url()).pathname;
  await page.goto(at('rules', 'tab=history'));
  await page.getByText(`: ${TEAM}`).first().waitFor();
}

async function a_resolved_group_leaves_the_list_and_comes_back_in_a_later_version(reader, state) {
  const { page } = reader;
  await page.goto(`${state.deskGroup}?project=${DESK}`);
  const status = page.getByRole('region', { name: 'Status and comments' });
  await status.getByRole('button', { name: 'Resolve…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Resolve this group' });
  await page.waitForFunction(() => document.querySelector('dialog input')?.value === '4.9.0');
  await reader.look('jank-resolve');
  await dialog.getByRole('button', { name: 'Resolve', exact: true }).click();
  await status.getByText('Resolved in 4.9.0').waitFor();
  await dialog.waitFor({ state: 'hidden' });
  await status.getByRole('textbox', { name: 'Comment' }).fill(`${HOSTILE}\nFixed by writing later.`);
  await status.getByRole('button', { name: 'Add comment' }).click();
  await status.getByText(HOSTILE).waitFor();
  await reader.look('jank-resolved');

  await page.goto(at('jank'));
  await groups(page)
    .getByRole('link', { name: /Drawer\.close/ })
    .waitFor();
  check((await groups(page).getByText('Drawer.open').count()) === 0, 'the resolved group is still listed');
  await page.getByRole('button', { name: 'Open groups' }).click();
  await page.getByRole('option', { name: 'Resolved groups' }).click();
  await page.waitForURL(/status=resolved/);
  await groups(page).getByText('resolved in 4.9.0').waitFor();

  await send(page, state.deskKey, '4.10.0');
  await until(page, 'query/janks?by=title&measure=count&group_status=open', ({ rows }) => rows.length === 2);
  await page.goto(at('jank'));
  const row = groups(page).getByRole('row', { name: /Drawer\.open/ });
  await row.getByText('came back in 4.10.0').waitFor();
  await reader.look('jank-came-back');
  await row.getByRole('link', { name: /Drawer\.open/ }).click();
  await status.getByText('Came back in 4.10.0').waitFor();
  await status.getByRole('button', { name: 'Delete' }).click();
  await status.getByText(HOSTILE).waitFor({ state: 'detached' });
}

async function the_second_of_two_editors_sees_the_decision_of_the_first(reader, state) {
  const { page } = reader;
  reader.expect(409);
  await page.goto(`${state.deskGroup}?project=${DESK}`);
  const status = page.getByRole('region', { name: 'Status and comments' });
  await status.getByRole('button', { name: 'Ignore…' }).click();
  const dialog = page.getByRole('dialog', { name: 'Ignore this group' });
  await page.waitForFunction(() => document.querySelector('dialog input')?.value === '4.10.0');
  const data = { state: 'resolved', app_id: 'com.example.desk', app_version: '4.10.0', expected_revision: 1 };
  const other = await page.request.put(
    `/api/v1/projects/${DESK}/janks/groups/${state.deskGroup.split('/')[2]}/handling`,
    {
      data,
    },
  );
  check(other.ok(), `no decision: ${other.status()} ${await other.text()}`);
  await dialog.getByRole('button', { name: 'Ignore', exact: true }).click();
  await page.getByText('Another person changed the status in the meantime').waitFor();
  await dialog.waitFor({ state: 'hidden' });
  await status.getByText('Resolved in 4.10.0').waitFor();
  await status.getByRole('button', { name: 'Reopen' }).click();
  await status.getByText('Reopened', { exact: true }).waitFor();
}

async function my_team_filters_janks_hangs_and_incidents(reader) {
  const { page } = reader;
  await page.goto(at('jank'));
  await page.getByRole('button', { name: 'Choose my team' }).click();
  await page.getByRole('option', { name: TEAM }).click();
  await page.waitForURL(new RegExp(`owner=${TEAM}`));
  await groups(page)
    .getByRole('link', { name: /Drawer\.open/ })
    .waitFor();
  await groups(page).getByText('Drawer.close').waitFor({ state: 'detached' });
  await page.goto(at('hangs'));
  await page.getByLabel('My team’s').check();
  await page.waitForURL(new RegExp(`owner=${TEAM}`));
  await page.goto(at('incidents'));
  await page.getByLabel('My team’s').check();
  await page.waitForURL(new RegExp(`owner=${TEAM}`));
  await page.getByText('No incidents match').waitFor();
  await reader.look('incidents-my-team');
  await page.getByLabel('My team’s').uncheck();
  await page.waitForURL((url) => !url.search.includes('owner='));
}

/** In this order, because later walks depend on earlier ones. */
export const walks = [
  an_owner_is_assigned_to_a_group_of_janks,
  a_resolved_group_leaves_the_list_and_comes_back_in_a_later_version,
  the_second_of_two_editors_sees_the_decision_of_the_first,
  my_team_filters_janks_hangs_and_incidents,
];
