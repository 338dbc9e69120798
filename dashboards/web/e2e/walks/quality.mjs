// The pages about performance, with data: links, comparisons, state in the URL, and the flame graph by mouse and keyboard.
import { APP, LATEST, PREVIOUS, sendMeasurements } from '../measurements.mjs';
import { check } from '../reader.mjs';
import { PROJECT } from '../server.mjs';

const COMPARED = `app_id=${APP}&app_version=${LATEST}&base_app_version=${PREVIOUS}`;

async function devices_send_what_they_measured(reader, state) {
  const { page } = reader;
  await page.goto(`/keys?project=${PROJECT}`);
  await page.getByRole('heading', { name: 'Ingest keys' }).waitFor();
  const ask = (method, path, body) =>
    page.evaluate(
      async ([method, path, body]) => {
        const headers = body ? { 'content-type': 'application/json' } : {};
        const answer = await fetch(path, { method, headers, body: body && JSON.stringify(body) });
        if (!answer.ok) throw new Error(`${path} answers ${answer.status}: ${await answer.text()}`);
        return answer.json();
      },
      [method, path, body],
    );
  const { secret, key } = await ask('POST', `/api/v1/projects/${PROJECT}/keys`, { name: 'Walks' });
  await sendMeasurements(state.url, secret ?? key, (path) => ask('GET', `/api/v1/projects/${PROJECT}/${path}`));
}

async function the_overview_compares_the_latest_version_and_says_what_got_worse(reader) {
  const { page } = reader;
  await page.goto(`/?project=${PROJECT}`);
  await page.getByRole('link', { name: /Slow frames.*worse/ }).waitFor();
  const lead = await page
    .getByText(/ compared with /)
    .first()
    .textContent();
  check(lead.includes(LATEST) && lead.includes(PREVIOUS), `compares: ${lead}`);
  const worse = page.getByRole('region', { name: 'What changed' });
  await worse.getByRole('link', { name: 'checkout' }).waitFor();
  await reader.look('overview-data');
  await worse.getByRole('button', { name: 'Page loads' }).click();
  await page.waitForURL(/of=Page(\+|%20)load/);
  await worse.getByRole('link', { name: 'CartActivity' }).click();
  await page.waitForURL(/\/page-loads\?.*page=CartActivity/);
  check(page.url().includes(`base_app_version=${PREVIOUS}`), `the comparison was lost: ${page.url()}`);
  await page.getByRole('heading', { name: 'Slowest requests of CartActivity' }).waitFor();
  await page.goBack();
  await page.waitForURL(/of=Page(\+|%20)load/);
  await page.goBack();
  await page.waitForURL((url) => !url.search.includes('of='));
  await page.getByRole('link', { name: /Janks per hour/ }).click();
  await page.waitForURL(/\/jank\?/);
}

async function groups_of_janks_are_sorted_filtered_and_new_ones_marked(reader) {
  const { page } = reader;
  await page.goto(`/jank?project=${PROJECT}`);
  await page.getByRole('link', { name: /CartDao.insert/ }).waitFor();
  await page.getByRole('link', { name: `Compare ${LATEST} with ${PREVIOUS}` }).click();
  await page.waitForURL(/base_app_version/);
  const fresh = page.getByRole('row', { name: /CartDao.total/ });
  await fresh.getByText('new', { exact: true }).waitFor();
  await page.getByRole('button', { name: 'Time lost' }).click();
  await page.waitForURL(/sort=-sum_ms/);
  await reader.look('jank-groups');
  await page.getByRole('button', { name: 'Janks and ANRs' }).click();
  await page.getByRole('option', { name: 'ANRs only' }).click();
  await page.waitForURL(/kind=anr/);
  await page.getByRole('link', { name: /CartDao.insert/ }).waitFor({ state: 'detached' });
  await page.goBack();
  await page.getByRole('link', { name: /CartDao.insert/ }).waitFor();
  await page.getByRole('checkbox').check();
  await page.waitForURL(/causes=all/);
}

async function a_group_has_a_page_with_stacks_events_and_downloads(reader, state) {
  const { page } = reader;
  await page.goto(`/jank?project=${PROJECT}&${COMPARED}`);
  await page.getByRole('link', { name: /CartDao.insert/ }).click();
  await page.waitForURL(/\/jank\/\d+\?/);
  state.group = new URL(page.url()).pathname;
  await page.getByRole('heading', { name: /CartDao.insert/ }).waitFor();
  await page.waitForFunction(() => document.activeElement?.tagName === 'H1');
  await page.getByRole('region', { name: 'By device model' }).getByRole('link', { name: 'Pixel 8' }).waitFor();
  await reader.look('jank-group');
  await page.getByRole('tab', { name: 'Stacks' }).click();
  await page.getByText('app, culprit').first().waitFor();
  await reader.look('jank-stacks');
  await page.getByRole('tab', { name: 'Single janks' }).click();
  await page.getByText('120 ms into the stall').first().waitFor();
  await page.getByText('CartActivity is shown').first().waitFor();
  await reader.look('jank-events');
  await page.getByRole('tab', { name: 'Flame graph' }).click();
  const [file] = await Promise.all([
    page.waitForEvent('download'),
    page.getByRole('link', { name: 'Folded stacks' }).click(),
  ]);
  check(file.suggestedFilename().endsWith('.folded'), file.suggestedFilename());
  await page.goBack();
  await page.goBack();
  await page.getByText('app, culprit').first().waitFor();
  await page.getByRole('link', { name: 'All groups' }).click();
  await page.waitForURL(/\/jank\?/);
}

async function a_flame_graph_is_zoomed_by_mouse_and_keyboard_and_compares(reader) {
  const { page } = reader;
  await page.goto(`/jank?project=${PROJECT}&tab=flame&${COMPARED}`);
  const graph = page.getByRole('application');
  await graph.waitFor();
  await page
    .getByRole('region', { name: 'Functions that changed' })
    .getByText(`not in this period of ${PREVIOUS}`)
    .first()
    .waitFor();
  // The third row is the method that the loop dispatched.
  await graph.click({ position: { x: 40, y: 50 } });
  await page.getByRole('button', { name: 'Whole graph' }).waitFor();
  check((await at(page)).includes('dispatchMessage'), `a click does not zoom in: ${await at(page)}`);
  await graph.press('Escape');
  await graph.press('Escape');
  await page.getByRole('button', { name: 'Whole graph' }).waitFor({ state: 'detached' });
  for (const step of ['ArrowDown', 'ArrowDown', 'ArrowDown', 'Enter']) await graph.press(step);
  await page.getByRole('button', { name: 'Whole graph' }).waitFor();
  check(/CartDao/.test(await at(page)), `the keyboard does not move the selection: ${await at(page)}`);
  check(/than in|not in/.test(await at(page)), `the change is not announced: ${await at(page)}`);
  await reader.look('jank-flame');
  await page.getByRole('button', { name: `of ${PREVIOUS}`, exact: true }).click();
  await page.waitForURL(/widths=before/);
  await page.getByText(`Width is the time lost in ${PREVIOUS}`).waitFor();
  // The chosen function is new, so the innermost of its callers that was there is chosen.
  await page.locator('p[aria-live=polite]').filter({ hasText: 'dispatchMessage' }).waitFor();
  await reader.look('jank-flame-before');
  await page.goBack();
  await page.getByRole('button', { name: 'Show as table' }).click();
  await page.getByRole('cell', { name: 'android.os.Looper.loop' }).first().waitFor();
}

function at(page) {
  return page.locator('p[aria-live=polite]').textContent();
}

async function frames_and_page_loads_show_what_is_chosen(reader) {
  const { page } = reader;
  await page.goto(`/frames?project=${PROJECT}&${COMPARED}`);
  await page.getByRole('heading', { name: 'Slow frames by page' }).waitFor();
  await page.getByRole('row', { name: /CartActivity.*worse.*high/ }).waitFor();
  await reader.look('frames-data');
  await page.getByRole('button', { name: 'Frozen', exact: true }).click();
  await page.waitForURL(/measure=frozen_share/);
  await page.getByRole('heading', { name: 'Frozen frames by page' }).waitFor();
  await page
    .getByRole('region', { name: 'Frame times by version' })
    .getByRole('button', { name: 'Show as table' })
    .click();
  await page.getByRole('cell', { name: PREVIOUS }).first().waitFor();
  await page.goBack();
  await page.getByRole('heading', { name: 'Slow frames by page' }).waitFor();

  await page.goto(`/page-loads?project=${PROJECT}&part=t2&percentile=p95&${COMPARED}`);
  await page.getByRole('heading', { name: 'T2, p95, over time' }).waitFor();
  await page.getByRole('region', { name: 'By version' }).getByRole('link', { name: PREVIOUS }).waitFor();
  await reader.look('page-loads-data');
  await page.getByRole('button', { name: 'Total', exact: true }).click();
  await page.waitForURL((url) => !url.search.includes('part='));
  await page.getByRole('link', { name: 'CartActivity' }).first().click();
  await page.waitForURL(/page=CartActivity/);
  check(page.url().includes('percentile=p95'), `the percentile was lost: ${page.url()}`);
}

/** The text of a card. */
function card(page, label) {
  const named = page.locator('.label').getByText(label, { exact: true });
  return page.locator('.card').filter({ has: named });
}

async function slow_app_starts_lead_to_their_phases_and_sessions(reader) {
  const { page } = reader;
  await page.goto(`/app-starts?project=${PROJECT}&${COMPARED}`);
  await card(page, 'Cold start, p50')
    .getByText(/^1\.\d+ s$/)
    .waitFor();
  await card(page, 'Cold starts of 5 s or longer').getByText('0 %', { exact: true }).waitFor();
  const phases = page.getByRole('region', { name: 'Phases of cold starts' });
  // `di` takes twice as long as before.
  await phases.getByRole('row', { name: /di.*\+1\d\d %.*worse/ }).waitFor();
  await page.getByRole('region', { name: 'By device model' }).getByRole('link', { name: 'Pixel 8' }).waitFor();
  await reader.look('app-starts-data');
  await reader.context.grantPermissions(['clipboard-read', 'clipboard-write']);
  await phases.getByRole('button', { name: 'Markdown' }).click();
  await page.getByText('Copied as Markdown.').waitFor();
  const copied = await page.evaluate(() => navigator.clipboard.readText());
  for (const part of ['## App starts: ', '**Period:**', `**Compared with:** ${PREVIOUS}`, '| di |', ', worse, before '])
    check(copied.includes(part), `the Markdown lacks "${part}": ${copied}`);
  check(copied.includes(`${new URL(page.url()).origin}/app-starts?`), `no link to the page: ${copied}`);
  await page.getByRole('group', { name: 'Measure' }).getByRole('button', { name: 'slow share' }).click();
  await page.waitForURL(/measure=slow/);
  await page.getByRole('heading', { name: 'Cold starts, slow share, over time' }).waitFor();
  await page.getByRole('group', { name: 'Kind' }).getByRole('button', { name: 'Warm' }).click();
  await page.waitForURL(/kind=warm/);
  await page.goBack();
  const slowest = page.getByRole('region', { name: 'Slowest cold starts' });
  await slowest.getByText('first_frame').or(slowest.getByText('di')).first().waitFor();
  await slowest
    .getByRole('link', { name: /Spans during the start/ })
    .first()
    .click();
  await page.waitForURL(/\/traces\?.*session_id=/);
  await page.getByRole('link', { name: 'checkout' }).first().waitFor();
  await page.goBack();
  await slowest.getByRole('link').first().click();
  await page.waitForURL(/\/sessions\/[0-9a-f-]{36}\?.*at=/);
  await page.getByRole('heading', { level: 1 }).waitFor();
}

async function hangs_are_counted_by_duration_and_end_and_lead_to_groups(reader) {
  const { page } = reader;
  await page.goto(`/hangs?project=${PROJECT}&${COMPARED}`);
  // 42 installs with 500 ms or more of the old stack, and all 52 with the new one.
  await card(page, 'Hangs').getByText('94', { exact: true }).waitFor();
  await card(page, 'Hangs per hour of use').getByText(/worse/).waitFor();
  await card(page, 'Installs with a hang').getByText('100 %', { exact: true }).waitFor();
  await card(page, 'Kills').getByText('11', { exact: true }).waitFor();
  const groups = page.getByRole('table', { name: 'Jank groups' });
  await groups.getByRole('row', { name: /CartDao.total.*new/ }).waitFor();
  await groups.getByRole('link', { name: /CartDao.insert/ }).waitFor();
  await page.getByRole('table', { name: 'By version' }).getByRole('link', { name: PREVIOUS }).waitFor();
  await reader.look('hangs-data');
  await page.getByRole('button', { name: 'ANRs, from 5 s' }).click();
  await page.waitForURL(/hangs=anr/);
  await groups.getByRole('link', { name: /CartDao.insert/ }).waitFor({ state: 'detached' });
  await page.getByRole('button', { name: 'Ended in a kill', exact: true }).click();
  await page.waitForURL(/hangs=killed/);
  await card(page, 'Hangs').getByText('11', { exact: true }).waitFor();
  await page.getByRole('tab', { name: 'Single hangs' }).click();
  await page.getByText('when the process was killed').first().waitFor();
  await page.getByRole('link', { name: 'Session timeline' }).first().waitFor();
  await reader.look('hangs-killed');
  await page.getByRole('tab', { name: 'Groups' }).click();
  await groups.getByRole('link', { name: /CartDao.total/ }).click();
  await page.waitForURL(/\/jank\/\d+\?/);
  await page.getByRole('heading', { name: /CartDao.total/ }).waitFor();
}

async function see(reader, state, suffix) {
  const { page } = reader;
  const pages = {
    overview: '/',
    jank: `/jank`,
    flame: '/jank?tab=flame',
    group: state.group,
    events: `${state.group}?tab=events`,
    hangs: '/hangs',
    'app-starts': '/app-starts',
    frames: '/frames',
    'page-loads': '/page-loads',
  };
  for (const [name, path] of Object.entries(pages)) {
    await page.goto(`${path}${path.includes('?') ? '&' : '?'}project=${PROJECT}&${COMPARED}`);
    await page.locator('h1').waitFor();
    await reader.look(`data-${name}-${suffix}`);
    await reader.overflow(`data-${name}-${suffix}`);
  }
}

async function pages_with_data_in_dark_colours(reader, state) {
  await see(reader, state, 'dark');
}
pages_with_data_in_dark_colours.options = { colorScheme: 'dark' };

async function pages_with_data_on_a_narrow_screen(reader, state) {
  await see(reader, state, 'narrow');
}
pages_with_data_on_a_narrow_screen.options = { viewport: { width: 400, height: 800 } };

/** In this order, because later walks depend on earlier ones. */
export const walks = [
  devices_send_what_they_measured,
  the_overview_compares_the_latest_version_and_says_what_got_worse,
  groups_of_janks_are_sorted_filtered_and_new_ones_marked,
  a_group_has_a_page_with_stacks_events_and_downloads,
  a_flame_graph_is_zoomed_by_mouse_and_keyboard_and_compares,
  frames_and_page_loads_show_what_is_chosen,
  slow_app_starts_lead_to_their_phases_and_sessions,
  hangs_are_counted_by_duration_and_end_and_lead_to_groups,
  pages_with_data_in_dark_colours,
  pages_with_data_on_a_narrow_screen,
];
