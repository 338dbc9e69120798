// Reaching things: command palette, refreshes, links with fixed time, time zone, and filters. On the data of the demo.
import { readFile } from 'node:fs/promises';
import { shiftFault, watchShifts } from '../layout_shift.mjs';
import { check } from '../reader.mjs';

const CLIPBOARD = ['clipboard-read', 'clipboard-write'];
const RANGE = 'project=shop&range=30d';
/** The last day of the demo, which ends at midnight: the last 24 hours have little data late in the day. */
const DAY_MS = 86_400_000;
const midnight = Math.floor(Date.now() / DAY_MS) * DAY_MS;
const LAST_DAY = `from=${new Date(midnight - DAY_MS).toISOString()}&to=${new Date(midnight).toISOString()}`;

async function open(reader, path) {
  await reader.page.goto(path);
  await reader.page.getByRole('heading', { level: 1 }).waitFor();
  await reader.settled();
}

const field = (page) => page.getByRole('dialog').getByRole('combobox');
const option = (page, name) => page.getByRole('dialog').getByRole('option', { name });
/** The values of all cards. */
const cards = async (page) => (await page.locator('.card .value').allInnerTexts()).join(', ');
const focused = (page) => page.evaluate(() => document.activeElement?.getAttribute('aria-label') ?? '');
/** Waits until the server has answered the search. */
const searched = (page) =>
  page
    .getByRole('dialog')
    .getByText(/^\d+ results?$/)
    .waitFor();

async function the_palette_reaches_pages_data_and_actions_by_keyboard(reader) {
  const { page } = reader;
  await open(reader, `/frames?${RANGE}`);
  const before = await page.evaluate(() => performance.getEntriesByType('resource').map(({ name }) => name));
  check(!before.some((name) => name.includes('/palette')), 'the palette is loaded before it is opened');

  // The button opens it, Escape closes it and returns the focus.
  await page.getByRole('button', { name: /^Search and commands/ }).focus();
  await page.keyboard.press('Enter');
  await field(page).waitFor();
  await reader.look('palette');
  await page.keyboard.press('Escape');
  await field(page).waitFor({ state: 'detached' });
  check(/^Search and commands/.test(await focused(page)), `the focus is on ${await focused(page)}`);

  await page.keyboard.press('Control+k');
  await field(page).fill('inge hea');
  await page.keyboard.press('Enter');
  await page.getByRole('heading', { level: 1, name: 'Ingest health' }).waitFor();
  const isTitle = await page.waitForFunction(() => document.activeElement?.tagName === 'H1');
  check(await isTitle.jsonValue(), 'the title has no focus');

  // Data that the server finds: spans, jank groups, versions.
  await page.keyboard.press('Control+k');
  await field(page).fill('orderdao');
  await searched(page);
  await option(page, /com\.example\.shop\.data\.OrderDao\.insert/).waitFor();
  await reader.look('palette-search');
  await page.keyboard.press('ArrowUp');
  const active = await field(page).getAttribute('aria-activedescendant');
  const chosen = page.locator(`[id="${active}"]`);
  check((await chosen.getAttribute('aria-selected')) === 'true', 'the last option is not the active one');
  check(/database on main thread/.test(await chosen.innerText()), await chosen.innerText());
  await page.keyboard.press('Enter');
  await page.waitForURL(/\/jank\/\d+/);
  await page.keyboard.press('Control+k');
  await field(page).fill('4.12');
  await option(page, /^4\.12\.0/).click();
  await page.waitForURL(/\/jank\/\d+\?.*app_version=4\.12\.0/);

  // Actions.
  await page.keyboard.press('Control+k');
  await field(page).fill('theme');
  await page.keyboard.press('Enter');
  await page.waitForFunction(() => document.documentElement.dataset.theme === 'dark');
  await page.keyboard.press('Control+k');
  await field(page).fill('nothing is named like this');
  await page.getByRole('dialog').getByText('Nothing found').waitFor();
  await reader.look('palette-dark');
}

async function the_palette_recognises_ids(reader, state) {
  const { page } = reader;
  // An id that is not a trace.
  reader.expect(404);
  const [one] = await state.demo.sql(
    `SELECT toString(install_id) AS install, toString(session_id) AS session, replaceAll(toString(trace_id), '-', '') AS trace
     FROM spans WHERE trace_id != toUUID('00000000-0000-0000-0000-000000000000') ORDER BY start DESC LIMIT 1`,
  );
  const [{ group }] = await state.demo.sql(`SELECT toString(group_id) AS group FROM stack_class_current LIMIT 1`);
  const ids = [
    [one.trace, /^Trace/, `/traces/${one.trace}`],
    [one.session.toUpperCase(), /^Session/, `/sessions/${one.session}`],
    [one.install, /^Install/, `/installs/${one.install}`],
    [group, new RegExp(group), `/jank/${group}`],
  ];
  await open(reader, `/?${RANGE}`);
  for (const [text, name, path] of ids) {
    await page.keyboard.press('Control+k');
    await field(page).fill(text);
    await option(page, name).waitFor();
    await page.keyboard.press('Enter');
    await page.waitForURL((url) => url.pathname === path);
    await page.getByRole('heading', { level: 1 }).waitFor();
  }
  await page.keyboard.press('Control+k');
  await field(page).fill('deadbeef-dead-4eef-8ead-beefdeadbeef');
  await page.getByText('No trace, session, install or jank group has this id').waitFor();
}

/** The queries of a page: those sent, and a wait until all are answered. */
function queries(page) {
  const state = { sent: [] };
  const pending = new Set();
  page.on('request', (request) => {
    if (!request.url().includes('/query/')) return;
    state.sent.push(request);
    pending.add(request);
  });
  for (const end of ['requestfinished', 'requestfailed']) page.on(end, (request) => pending.delete(request));
  state.answered = async () => {
    for (let quiet = 0; quiet < 3; quiet = pending.size === 0 ? quiet + 1 : 0) await page.waitForTimeout(200);
  };
  return state;
}

/** Records every part of the page that is dimmed, or replaced by a skeleton. */
function watchFlashes(page) {
  return page.evaluate(() => {
    globalThis.flashes = [];
    globalThis.shifts.length = 0;
    new MutationObserver((changes) => {
      for (const { target, addedNodes } of changes) {
        for (const node of [target, ...addedNodes]) {
          const found = node.nodeType === 1 && (node.matches('.stale, .skeleton') || node.querySelector('.skeleton'));
          if (found) globalThis.flashes.push(node.className);
        }
      }
    }).observe(document.body, { subtree: true, childList: true, attributes: true, attributeFilter: ['class'] });
  });
}

async function noFlash(reader, name) {
  const flashes = await reader.page.evaluate(() => globalThis.flashes);
  check(flashes.length === 0, `${name} flashes: ${flashes}`);
  reader.faults.push(...(await shiftFault(reader.page, `a refresh of ${name}`)));
}

async function pages_refresh_themselves_only_while_visible_and_one_request_at_a_time(reader) {
  const { page } = reader;
  await page.clock.install();
  await watchShifts(page);
  const asked = queries(page);
  await open(reader, `/frames?${RANGE}`);
  await page.getByRole('button', { name: 'Refresh: off' }).click();
  await reader.look('refresh');
  await page.getByRole('option', { name: '30 s' }).click();
  await page.evaluate(() => scrollTo(0, 500));
  await watchFlashes(page);

  // While an answer takes longer than the interval, no second request is sent.
  asked.sent = [];
  let answer = () => {};
  const held = new Promise((resolve) => (answer = resolve));
  await page.route('**/query/**', async (route) => {
    await held;
    await route.continue();
  });
  await page.clock.fastForward(31_000);
  await page.waitForTimeout(300);
  const first = asked.sent.length;
  check(first > 0, 'nothing is refreshed');
  await page.clock.fastForward(65_000);
  await page.waitForTimeout(300);
  check(asked.sent.length === first, `${asked.sent.length} requests, although the first ${first} have no answer`);
  answer();
  await asked.answered();
  await noFlash(reader, 'Frames');
  check((await page.evaluate(() => scrollY)) === 500, 'the page scrolled');

  // A hidden page does not refresh. It refreshes as soon as it is visible.
  const hide = (isHidden) =>
    page.evaluate((isHidden) => {
      Object.defineProperty(document, 'hidden', { configurable: true, get: () => isHidden });
      document.dispatchEvent(new Event('visibilitychange'));
    }, isHidden);
  await hide(true);
  asked.sent = [];
  await page.clock.fastForward(120_000);
  await page.waitForTimeout(300);
  check(asked.sent.length === 0, 'a hidden page refreshes');
  const next = page.waitForRequest('**/query/**');
  await hide(false);
  await next;
  await asked.answered();
}

async function a_refresh_leaves_every_page_as_it_is(reader) {
  const { page } = reader;
  await page.addInitScript(() => localStorage.setItem('unjank-refresh', '30s'));
  await page.clock.install();
  await watchShifts(page);
  const asked = queries(page);
  const pages = [
    '/',
    '/jank',
    '/spans?name=checkout',
    '/page-loads',
    '/traffic',
    '/resources?metric=memory_used_bytes',
  ];
  for (const path of pages) {
    await open(reader, `${path}${path.includes('?') ? '&' : '?'}${RANGE}`);
    await asked.answered();
    await watchFlashes(page);
    const next = page.waitForRequest('**/query/**');
    await page.clock.fastForward(31_000);
    await next;
    await asked.answered();
    await noFlash(reader, path);
  }

  // A failed refresh leaves the numbers, and says so.
  reader.expect(503);
  const numbers = await cards(page);
  await page.route('**/query/**', (route) => route.fulfill({ status: 503, body: '{"code":"overloaded"}' }));
  await page.clock.fastForward(31_000);
  await page.getByRole('button', { name: 'Refresh: 30 s (failed)' }).waitFor();
  check((await cards(page)) === numbers, 'the numbers are gone');
  await page.unrouteAll({ behavior: 'wait' });

  // A period with a fixed end does not refresh.
  await page.goto('/frames?project=shop&from=2026-11-01T00:00:00Z&to=2026-11-02T00:00:00Z');
  await page.getByRole('button', { name: 'Refresh: off' }).click();
  await page.getByText('This period has a fixed end').waitFor();
  check((await page.getByRole('option').count()) === 0, 'a fixed period has options');
}

async function a_link_with_fixed_time_shows_the_same_numbers(reader) {
  const { page } = reader;
  await open(reader, `/frames?${RANGE}&device_class=low`);
  const numbers = await cards(page);
  await page.getByRole('button', { name: 'Copy link with fixed time' }).click();
  await page.getByText('Link copied').waitFor();
  const link = await page.evaluate(() => navigator.clipboard.readText());
  const { searchParams } = new URL(link);
  check(!searchParams.has('range') && searchParams.get('device_class') === 'low', link);
  const from = searchParams.get('from');
  const days = (Date.parse(searchParams.get('to')) - Date.parse(from)) / 86_400_000;
  check(days >= 30 && days < 31 && from.endsWith('T00:00:00Z'), `the link has ${days} days from ${from}`);
  await open(reader, link);
  check((await cards(page)) === numbers, `${await cards(page)} are not ${numbers}`);
}
a_link_with_fixed_time_shows_the_same_numbers.options = { permissions: CLIPBOARD };

async function without_a_clipboard_the_link_is_in_the_address(reader) {
  const { page } = reader;
  await page.addInitScript(() => Object.defineProperty(navigator, 'clipboard', { value: undefined }));
  await open(reader, `/frames?${RANGE}`);
  await page.getByRole('button', { name: 'Copy link with fixed time' }).click();
  await page.getByText('Copy the link from the address bar').waitFor();
  await page.waitForURL(/from=.*&to=/);
}

async function all_times_follow_the_chosen_zone(reader, state) {
  const { page } = reader;
  const [span] = await state.demo.sql(
    `SELECT toUnixTimestamp64Milli(start) AS at FROM spans WHERE name = 'checkout' ORDER BY duration_us DESC LIMIT 1`,
  );
  const text = (timeZone) =>
    new Intl.DateTimeFormat('en-GB', {
      ...{ day: 'numeric', month: 'short', hour: '2-digit', minute: '2-digit', second: '2-digit', timeZone },
    }).format(Number(span.at));
  const first = page.getByRole('table').first().locator('tbody tr').first();
  await open(reader, `/traces?name=checkout&${RANGE}`);
  await page.getByRole('button', { name: 'Time zone: UTC−3:30, America/St_Johns' }).waitFor();
  await first.getByText(text('America/St_Johns')).waitFor();
  await reader.look('time-zone');
  const download = page.waitForEvent('download');
  await page.getByRole('button', { name: 'CSV' }).first().click();
  const file = await readFile(await (await download).path(), 'utf8');
  check(/-03:30/.test(file.split('\r\n')[1]), `the time in the file is ${file.split('\r\n')[1]}`);

  // A period that a person types is in the same zone.
  await page.getByRole('button', { name: 'Last 30 days' }).click();
  await page.getByRole('option', { name: 'From … to …' }).click();
  await page.getByText('Time zone: America/St_Johns').waitFor();
  await page.getByLabel('From', { exact: true }).fill('2026-11-10T20:30');
  await page.getByLabel('To', { exact: true }).fill('2026-11-11T20:30');
  await page.getByRole('button', { name: 'Show', exact: true }).click();
  await page.waitForURL(/from=2026-11-11T00%3A00%3A00Z&to=2026-11-12T00%3A00%3A00Z/);

  await open(reader, `/traces?name=checkout&${RANGE}`);
  await page.getByRole('button', { name: /^Time zone/ }).click();
  await page.getByRole('option', { name: 'UTC', exact: true }).click();
  await first.getByText(text('UTC')).waitFor();
  await page.reload();
  await page.getByRole('button', { name: 'Time zone: UTC', exact: true }).waitFor();
  await first.getByText(text('UTC')).waitFor();

  // Ticks of charts, and Markdown.
  await open(reader, `/spans?name=checkout&project=shop&${LAST_DAY}`);
  // Both zones have a tick at 12:00, but at different places.
  const labels = page.getByRole('region', { name: 'Over time' }).locator('svg text');
  await labels.first().waitFor();
  const ticks = () => labels.evaluateAll((all) => all.map((one) => one.outerHTML));
  const inUtc = await ticks();
  await page.getByRole('button', { name: 'Copy as Markdown' }).click();
  await page.getByText('Copied as Markdown').waitFor();
  check(/Period.*\(UTC\)/.test(await page.evaluate(() => navigator.clipboard.readText())), 'Markdown without UTC');
  await page.getByRole('button', { name: /^Time zone/ }).click();
  await page.getByRole('option', { name: /America\/St_Johns/ }).click();
  await page.getByRole('button', { name: 'Time zone: UTC−3:30, America/St_Johns' }).waitFor();
  check(inUtc.length > 2 && (await ticks()).join() !== inUtc.join(), `the ticks stay at ${inUtc}`);
  await page.getByRole('button', { name: 'Copy as Markdown' }).click();
  await page.waitForFunction(async () => /America\/St_Johns\)/.test(await navigator.clipboard.readText()));
}
all_times_follow_the_chosen_zone.options = { timezoneId: 'America/St_Johns', permissions: CLIPBOARD };

async function filters_open_their_values_and_say_what_they_read(reader, state) {
  const { page } = reader;
  await open(reader, `/frames?${RANGE}`);
  const [build] = await state.demo.sql(
    `SELECT toString(build) AS name, count() AS batches FROM batches GROUP BY name ORDER BY batches DESC LIMIT 1`,
  );
  const add = async (name) => {
    await page.getByRole('button', { name: 'Add filter' }).click();
    await page.getByRole('option', { name, exact: true }).click();
  };
  // No typing: the list opens with the most frequent value first.
  await add('Build');
  const options = page.getByRole('listbox').getByRole('option');
  await options.first().waitFor();
  check((await options.first().innerText()).includes(build.name), `${await options.first().innerText()} is first`);
  await reader.look('filter-values');
  await options.first().click();
  await page.keyboard.press('Escape');
  await page.waitForURL(new RegExp(`build=${build.name}`));
  await page.getByText('With the filter Build, results come from raw events').waitFor();
  await reader.settled();
  const frames = await state.demo.sql(
    `SELECT uniqCombined64(12)(install_id) AS installs FROM frame_windows WHERE build = ${build.name} AND start > now() - INTERVAL 30 DAY`,
  );
  const installs = page
    .locator('.card')
    .filter({ hasText: /^\s*Installs/ })
    .locator('.value');
  check((await installs.innerText()) === String(frames[0].installs), `${await installs.innerText()} installs`);

  for (const name of ['Channel', 'Config revision', 'Install']) {
    await add(name);
    await options.first().waitFor();
    await page.keyboard.press('Escape');
  }
  // A session that is not among the most frequent values is found by the server.
  await add('Session');
  await page.getByText('The 200 most frequent').waitFor();
  check((await options.count()) === 200, `${await options.count()} values`);
  const listed = new Set((await options.allInnerTexts()).map((text) => /[0-9a-f-]{36}/.exec(text)[0]));
  // Well inside of the period, because old batches are dropped.
  const sessions = await state.demo.sql(
    `SELECT DISTINCT toString(session_id) AS id FROM batches WHERE received_at > now() - INTERVAL 7 DAY`,
  );
  const { id } = sessions.find((one) => !listed.has(one.id)) ?? {};
  check(id, `all of ${sessions.length} sessions are listed`);
  await page.keyboard.type(id.slice(0, 13));
  await page.getByRole('option', { name: id }).click();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: `Session: ${id.slice(0, 8)}…` }).waitFor();
  await reader.look('filters-raw');

  // Ingest health counts events of the server without these filters, and says so.
  await open(reader, `/ingest?${RANGE}&build=${build.name}`);
  await page.getByText('Server counts are not recorded by build').waitFor();
}

async function the_controls_fit_a_narrow_screen(reader) {
  const { page } = reader;
  await open(reader, `/frames?${RANGE}&build=4110087&channel=play`);
  await reader.look('reach-narrow');
  await reader.overflow('reach-narrow');
  await page.getByRole('button', { name: /^Time zone/ }).click();
  await page.getByRole('option').first().waitFor();
  await reader.overflow('reach-narrow-zone');
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: /^Search and commands/ }).click();
  await field(page).fill('sp');
  await searched(page);
  await reader.look('palette-narrow');
  await reader.overflow('palette-narrow');
}
the_controls_fit_a_narrow_screen.options = { viewport: { width: 400, height: 800 } };

export const walks = [
  the_palette_reaches_pages_data_and_actions_by_keyboard,
  the_palette_recognises_ids,
  pages_refresh_themselves_only_while_visible_and_one_request_at_a_time,
  a_refresh_leaves_every_page_as_it_is,
  a_link_with_fixed_time_shows_the_same_numbers,
  without_a_clipboard_the_link_is_in_the_address,
  all_times_follow_the_chosen_zone,
  filters_open_their_values_and_say_what_they_read,
  the_controls_fit_a_narrow_screen,
];
