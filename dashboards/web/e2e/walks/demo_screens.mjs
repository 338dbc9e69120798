// The pages of the demo on other screens and in dark colours, and while they load.
import { shiftFault, watchShifts } from '../layout_shift.mjs';
import { check } from '../reader.mjs';
import { at, LATEST, open, openFiringIncidents, PAIR, VERSIONS } from './demo.mjs';

const PAGES = {
  overview: '/',
  jank: `/jank?${PAIR}`,
  flame: `/jank?tab=flame&${PAIR}`,
  frames: `/frames?${PAIR}`,
  'frames-same-age': `/frames?${VERSIONS}`,
  hangs: `/hangs?${PAIR}`,
  'app-starts': `/app-starts?${PAIR}`,
  'page-loads': '/page-loads',
  spans: `/spans?${PAIR}`,
  span: `/spans?name=checkout&${PAIR}`,
  traces: '/traces?name=checkout',
  sessions: '/sessions',
  traffic: '/traffic',
  resources: `/resources?metric=memory_used_bytes&${PAIR}`,
  ingest: '/ingest',
  versions: '/versions',
  version: `/versions/${LATEST}`,
};

/** Pages of single things: a list, and the beginning of the links in it. */
const SINGLE = {
  group: [`/jank?${PAIR}`, '/jank/'],
  trace: ['/traces?name=checkout', '/traces/'],
  session: ['/sessions', '/sessions/'],
  incident: ['/incidents', '/incidents/'],
  'alert-rule': ['/alert-rules', '/alert-rules/'],
};

/** The names and addresses of all pages, single things included. */
export async function addresses(reader) {
  await openFiringIncidents(reader);
  const found = Object.entries(PAGES).map(([name, path]) => [name, at(path)]);
  for (const [name, [list, link]] of Object.entries(SINGLE)) {
    await reader.page.goto(at(list));
    const first = reader.page.locator(`main td a[href^="${link}"]`).first();
    found.push([name, await first.getAttribute('href')]);
  }
  return found;
}

async function see(reader, suffix) {
  const pages = await addresses(reader);
  await watchShifts(reader.page);
  for (const [name, path] of pages) {
    await reader.page.goto(path);
    await reader.page.locator('h1').waitFor();
    await reader.settled();
    reader.faults.push(...(await shiftFault(reader.page, `demo-${name}-${suffix}`)));
    await reader.look(`demo-${name}-${suffix}`);
    await reader.overflow(`demo-${name}-${suffix}`);
  }
}

/** Counts of installs take most of the time of a query. */
const COUNTS_INSTALLS = /\/query\/(janks|metrics)\?.*measure=installs/;

async function the_first_numbers_do_not_wait_for_installs(reader) {
  const { page } = reader;
  for (const [path, name] of [
    ['/jank', 'Jank groups'],
    ['/resources', 'Metrics'],
  ]) {
    let answer = () => {};
    const held = new Promise((resolve) => (answer = resolve));
    await page.route(COUNTS_INSTALLS, async (route) => {
      await held;
      await route.continue();
    });
    await page.goto(at(path));
    const row = page.getByRole('table', { name, exact: true }).locator('tbody tr').first();
    await row.getByText('…').first().waitFor();
    const count = await row.locator('td.number').first().innerText();
    check(/\d/.test(count), `${path} has no number yet: ${await row.innerText()}`);
    answer();
    await reader.settled();
    const whole = await row.innerText();
    check(whole.includes(count) && !whole.includes('…'), `${path} has a row without installs: ${whole}`);
    await page.unrouteAll({ behavior: 'wait' });
  }
}

async function the_demo_in_dark_colours(reader) {
  await see(reader, 'dark');
}
the_demo_in_dark_colours.options = { colorScheme: 'dark' };

async function the_demo_on_a_tablet(reader) {
  await see(reader, 'tablet');
}
the_demo_on_a_tablet.options = { viewport: { width: 1024, height: 768 } };

async function the_demo_on_a_narrow_screen(reader) {
  await see(reader, 'narrow');
  for (const path of [PAGES.jank, PAGES.spans, PAGES['page-loads'], PAGES.overview]) {
    await open(reader, at(path), /./);
    const heads = reader.page.getByRole('table').first().locator('thead th');
    for (const head of [heads.first(), heads.last()]) {
      const { x, width } = await head.boundingBox();
      check(x + width <= 400, `${path}: ${await head.innerText()} is outside of the screen`);
    }
  }
}
the_demo_on_a_narrow_screen.options = { viewport: { width: 400, height: 800 } };

export const walks = [
  the_first_numbers_do_not_wait_for_installs,
  the_demo_in_dark_colours,
  the_demo_on_a_tablet,
  the_demo_on_a_narrow_screen,
];
