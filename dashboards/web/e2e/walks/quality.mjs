// The pages about how an app runs, on data: what opens, what is compared, what the address holds, the flame graph by mouse and keyboard.
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
  const lead = await page.getByText('compared with').first().textContent();
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
  await page.getByRole('region', { name: 'Functions that changed' }).getByText('new').first().waitFor();
  // The third row: what the loop dispatched.
  await graph.click({ position: { x: 40, y: 50 } });
  await page.getByRole('button', { name: 'Whole graph' }).waitFor();
  check((await at(page)).includes('dispatchMessage'), `a click zooms: ${await at(page)}`);
  await graph.press('Escape');
  await graph.press('Escape');
  await page.getByRole('button', { name: 'Whole graph' }).waitFor({ state: 'detached' });
  for (const step of ['ArrowDown', 'ArrowDown', 'ArrowDown', 'Enter']) await graph.press(step);
  await page.getByRole('button', { name: 'Whole graph' }).waitFor();
  check(/CartDao/.test(await at(page)), `the keyboard walks: ${await at(page)}`);
  check(/than in|not in/.test(await at(page)), `the change is not said: ${await at(page)}`);
  await reader.look('jank-flame');
  await page.getByRole('button', { name: `of ${PREVIOUS}`, exact: true }).click();
  await page.waitForURL(/widths=before/);
  await page.getByText(`Width is the time lost in ${PREVIOUS}`).waitFor();
  await graph.focus();
  await page.getByText(/^all: /).waitFor();
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

async function see(reader, state, suffix) {
  const { page } = reader;
  const pages = {
    overview: '/',
    jank: `/jank`,
    flame: '/jank?tab=flame',
    group: state.group,
    events: `${state.group}?tab=events`,
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

/** In order: later ones see what earlier ones did. */
export const walks = [
  devices_send_what_they_measured,
  the_overview_compares_the_latest_version_and_says_what_got_worse,
  groups_of_janks_are_sorted_filtered_and_new_ones_marked,
  a_group_has_a_page_with_stacks_events_and_downloads,
  a_flame_graph_is_zoomed_by_mouse_and_keyboard_and_compares,
  frames_and_page_loads_show_what_is_chosen,
  pages_with_data_in_dark_colours,
  pages_with_data_on_a_narrow_screen,
];
