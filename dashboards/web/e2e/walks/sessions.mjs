// Sessions: links from janks and traces and back, search, live view, and a session with many events.
import { randomBytes, randomUUID } from 'node:crypto';
import { check } from '../reader.mjs';
import { PROJECT } from '../server.mjs';

const at = (path) => `${path}${path.includes('?') ? '&' : '?'}project=${PROJECT}`;
const SESSION = randomUUID();
const INSTALL = randomUUID();
const USER = 'ann-of-the-sessions';
const BUILD = 777_001;
const LARGE = randomUUID();
const start = Date.now() - 120_000;
const time = (second) => new Date(start + second * 1000).toISOString();
const span = (name, second, ms, more = {}) => ({
  trace_id: randomBytes(16).toString('hex'),
  span_id: randomBytes(8).toString('hex'),
  name,
  kind: 'manual',
  start: time(second),
  duration_us: ms * 1000,
  thread: 'main',
  on_main_thread: true,
  status: 'ok',
  page: 'BasketActivity',
  ...more,
});

function batch(events, session_id = SESSION) {
  const resource = {
    ...{ app_id: 'com.example.shop', app_version: '9.9.0', build: BUILD, install_id: INSTALL, user_id: USER },
    ...{ os_name: 'android', os_version: '15', device_model: 'Test device', mode: 'test', refresh_hz: 60 },
  };
  return { batch_id: randomUUID(), session_id, sent_at: new Date().toISOString(), resource, ...events };
}

const first = {
  app_starts: [{ kind: 'cold', start: time(0), duration_ms: 900, phases: [{ name: 'di', duration_ms: 200 }] }],
  page_loads: [{ page: 'BasketActivity', start: time(2), t1_ms: 80, t2_ms: 400, t3_ms: 60, total_ms: 520 }],
  frame_windows: [
    {
      ...{ page: 'BasketActivity', start: time(2), duration_ms: 10_000, frames_drawn: 500, slow_frames: 40 },
      ...{ frozen_frames: 2, jank_ms: 2600 },
    },
  ],
  janks: [
    {
      ...{ start: time(5), duration_ms: 2600, kind: 'jank', page: 'BasketActivity', thread: 'main', foreground: true },
      stack: [{ class: 'com.example.shop.basket.BasketDao', function: 'lockedTotal', file: 'BasketDao.kt', line: 12 }],
      run_log: [{ time: time(4), message: 'basket <b>opened</b>' }],
    },
  ],
  spans: [
    span('fill_basket', 3, 1200),
    span('POST /basket/fill', 3, 300, { thread: 'OkHttp', on_main_thread: false, status: 'error' }),
  ],
  metrics: [1, 5, 9].map((second) => ({ name: 'memory_used_bytes', time: time(second), value: 1e8 + second * 1e7 })),
  recompositions: [{ function: 'BasketList', page: 'BasketActivity', start: time(6), window_ms: 1000, count: 44 }],
};

/** Waits until the session has this number of spans. */
async function until(page, session, spans) {
  for (let tries = 0; tries < 120; tries += 1) {
    const answer = await page.request.get(`/api/v1/projects/${PROJECT}/sessions/${session}`);
    if (answer.ok() && (await answer.json()).session.spans >= spans) return;
    await page.waitForTimeout(500);
  }
  throw new Error(`the session ${session} does not show`);
}

async function send(page, state, events, session) {
  const headers = { authorization: `Bearer ${state.sessionKey}` };
  const answer = await page.request.post('/v1/ingest', { headers, data: batch(events, session) });
  check(answer.status() === 202, `a batch was rejected: ${answer.status()} ${await answer.text()}`);
  const { rejected } = await answer.json();
  check(rejected.length === 0, JSON.stringify(rejected));
}

async function a_test_device_sends_a_session(reader, state) {
  const { page } = reader;
  const made = await page.request.post(`/api/v1/projects/${PROJECT}/keys`, { data: { name: 'Device of sessions' } });
  check(made.status() === 201, `no key: ${made.status()} ${await made.text()}`);
  state.sessionKey = (await made.json()).key;
  const headers = { authorization: `Bearer ${state.sessionKey}` };
  for (let tries = 0; tries < 50 && !(await page.request.get('/v1/config', { headers })).ok(); tries += 1) {
    await page.waitForTimeout(100);
  }
  await send(page, state, first);
  await until(page, SESSION, 2);
  // The list of groups reads roll-ups, which are written a little later.
  for (let tries = 0; tries < 120; tries += 1) {
    const answer = await page.request.get(`/api/v1/projects/${PROJECT}/query/janks?by=kind&app_version=9.9.0`);
    if (answer.ok() && (await answer.json()).rows.length > 0) return;
    await page.waitForTimeout(500);
  }
  throw new Error('the jank does not show');
}

const chosen = (page) => page.getByRole('region', { name: 'Chosen event' });

async function from_a_jank_to_its_session_and_back(reader) {
  const { page } = reader;
  await page.goto(at('/jank?app_version=9.9.0'));
  await page.getByRole('link', { name: /BasketDao\.lockedTotal/ }).click();
  await page.getByRole('tab', { name: 'Single janks' }).click();
  await page.getByRole('link', { name: 'Session timeline' }).click();
  await page.waitForURL(new RegExp(`/sessions/${SESSION}\\?.*at=`));
  // The jank of the link is selected, with its stack.
  await chosen(page)
    .getByRole('heading', { name: /BasketDao\.lockedTotal/ })
    .waitFor();
  await chosen(page).getByText('2.6 s').waitFor();
  const stack = page.getByRole('region', { name: 'Stack of the jank' });
  await stack.getByText('com.example.shop.basket.BasketDao.lockedTotal').first().waitFor();
  await reader.look('session');
  await chosen(page).getByRole('link', { name: 'Jank group' }).click();
  await page.waitForURL(/\/jank\/\d+/);
  await page.getByRole('link', { name: 'Session timeline' }).waitFor();
}

async function every_kind_of_event_is_on_the_timeline_and_leads_on(reader) {
  const { page } = reader;
  await page.goto(at(`/sessions/${SESSION}`));
  const timeline = page.getByRole('application');
  await timeline.focus();
  const announced = page.locator('p[aria-live=polite]');
  const seen = [];
  // The first arrow key selects the first lane. Each further one selects the next lane.
  for (let lane = 0; lane < 10; lane += 1) {
    await page.keyboard.press('ArrowDown');
    seen.push((await announced.innerText()).split(':')[0]);
  }
  const kinds = ['Page', 'App start', 'Page load', 'Frames', 'Jank', 'Span on the main thread', 'Request'];
  for (const kind of [...kinds, 'Recomposition', 'Log line'])
    check(seen.includes(kind), `no ${kind} among ${seen.join(', ')}`);
  await page.keyboard.press('Enter');
  await page.getByRole('button', { name: 'Whole session' }).click();
  await page.getByRole('button', { name: 'Whole session', disabled: true }).waitFor();

  await page.getByRole('button', { name: 'Show as table' }).click();
  const table = page.getByRole('table', { name: 'Events of the session' });
  // The page must not interpret HTML from devices.
  await table.getByRole('button', { name: 'basket <b>opened</b>' }).waitFor();
  await page.getByLabel('Kind').selectOption('request');
  await table.getByRole('button', { name: 'POST /basket/fill' }).click();
  await page.waitForURL(/item=request/);
  await chosen(page).getByText('failed').waitFor();
  await reader.look('session-table');
  await chosen(page).getByRole('link', { name: 'Trace' }).click();
  await page.waitForURL(/\/traces\//);
  const span = page.getByRole('region', { name: 'Chosen span' });
  await span.getByRole('link', { name: 'Session timeline' }).click();
  await page.waitForURL(new RegExp(`/sessions/${SESSION}`));
  await chosen(page).getByRole('heading', { name: 'POST /basket/fill' }).waitFor();
}

async function sessions_are_found_by_install_user_and_build(reader) {
  const { page } = reader;
  const found = page.getByRole('region', { name: 'Sessions found' });
  await page.goto(at('/sessions'));
  for (const text of [INSTALL.toUpperCase(), SESSION, 'of-the-sess']) {
    await page.getByLabel('Session, install or user').fill(text);
    await page.getByRole('button', { name: 'Search', exact: true }).click();
    await page.waitForURL((url) => url.searchParams.get('find') === text);
    await found.getByText(SESSION.slice(0, 8)).waitFor();
    await found.getByText('1 row', { exact: true }).waitFor();
  }
  await reader.look('sessions-found');
  await page.getByLabel('Session, install or user').fill('nobody');
  await page.getByRole('button', { name: 'Search', exact: true }).click();
  await page.getByRole('button', { name: 'Search the last 90 days' }).click();
  await page.waitForURL(/range=90d/);
  await found.getByText('No sessions in this period').waitFor();

  // The page of the install links to its sessions, and to the sessions of the build.
  await page.goto(at(`/installs/${INSTALL}`));
  const sessions = page.getByRole('region', { name: 'Sessions of the install' });
  await sessions.getByRole('link', { name: `build ${BUILD}` }).click();
  await page.waitForURL(new RegExp(`/sessions\\?.*build=${BUILD}`));
  await found.getByText('1 row', { exact: true }).waitFor();
  await found.getByRole('link', { name: INSTALL.slice(0, 8) }).waitFor();
}

async function a_session_is_followed_while_its_device_sends(reader, state) {
  const { page } = reader;
  await page.goto(at(`/sessions/${SESSION}`));
  await page.getByRole('button', { name: 'Follow live' }).click();
  await page.getByText('Live.').waitFor();
  await page.getByText(/The last batch arrived .* ago/).waitFor();
  await page.getByRole('button', { name: 'Show as table' }).click();
  const table = page.getByRole('table', { name: 'Events of the session' });
  await send(page, state, { spans: [span('pay_basket', 60, 400)] });
  await table.getByRole('button', { name: 'pay_basket' }).waitFor();
  await reader.look('session-live');
  await page.getByRole('button', { name: 'Stop following' }).click();
  await page.getByRole('button', { name: 'Follow live' }).waitFor();
}

async function a_session_with_ten_thousand_events_stays_usable(reader, state) {
  const { page } = reader;
  const spans = Array.from({ length: 10_000 }, (_, place) => span(`step_${place}`, place / 100, 5 + (place % 50)));
  for (let from = 0; from < spans.length; from += 2500)
    await send(page, state, { spans: spans.slice(from, from + 2500) }, LARGE);
  await until(page, LARGE, spans.length);
  await page.goto(at(`/sessions/${LARGE}`));
  await page.getByText('8,000 spans are left out').waitFor();
  const timeline = page.getByRole('application');
  await timeline.focus();
  const before = Date.now();
  for (let step = 0; step < 40; step += 1) await page.keyboard.press('ArrowRight');
  for (let step = 0; step < 5; step += 1) await page.keyboard.press('+');
  const took = Date.now() - before;
  check(took < 8000, `45 keys took ${took} ms`);
  await page.getByRole('button', { name: 'Load the part shown' }).click();
  await page.getByText('Only a part of the session is loaded.').waitFor();
  await page.getByText('spans are left out').waitFor({ state: 'detached' });
  await reader.look('session-large');
  await page.getByRole('button', { name: 'Load the whole session' }).click();
  await page.getByText('8,000 spans are left out').waitFor();

  // Two selected sessions get their reports, and the command that compares them.
  await page.goto(at(`/sessions?build=${BUILD}`));
  for (const session of [SESSION, LARGE]) await page.getByLabel(`Compare the session ${session.slice(0, 8)}`).check();
  const command = page.getByRole('region', { name: 'Command to compare', exact: true });
  await command.getByText(`--base session_id=${SESSION}`).waitFor();
  const report = await page
    .getByRole('region', { name: 'Compare sessions' })
    .getByRole('link', { name: 'report' })
    .first()
    .getAttribute('href');
  const answer = await page.request.get(report);
  check(answer.ok() && (await answer.text()).includes('BasketActivity'), `no report: ${answer.status()}`);
}

async function sessions_on_a_narrow_dark_screen(reader) {
  const { page } = reader;
  const pages = { sessions: '/sessions', session: `/sessions/${SESSION}?at=${encodeURIComponent(time(5))}` };
  for (const [name, path] of Object.entries(pages)) {
    await page.goto(at(path));
    await page.getByRole('table').or(page.getByRole('application')).first().waitFor();
    await reader.settled();
    await reader.look(`${name}-narrow-dark`);
    await reader.overflow(`${name}-narrow-dark`);
  }
}
sessions_on_a_narrow_dark_screen.options = { viewport: { width: 400, height: 800 }, colorScheme: 'dark' };

/** The first walk sends the data of all others. */
export const walks = [
  a_test_device_sends_a_session,
  from_a_jank_to_its_session_and_back,
  every_kind_of_event_is_on_the_timeline_and_leads_on,
  sessions_are_found_by_install_user_and_build,
  a_session_is_followed_while_its_device_sends,
  a_session_with_ten_thousand_events_stays_usable,
  sessions_on_a_narrow_dark_screen,
];
