// The pages of the demo on other screens and in dark colours, and while they load.
import { shiftFault, watchShifts } from '../layout_shift.mjs';
import { check } from '../reader.mjs';
import { at, LATEST, open, PAIR } from './demo.mjs';

const PAGES = {
  overview: '/',
  jank: `/jank?${PAIR}`,
  flame: `/jank?tab=flame&${PAIR}`,
  frames: `/frames?${PAIR}`,
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

async function see(reader, suffix) {
  await watchShifts(reader.page);
  for (const [name, path] of Object.entries(PAGES)) {
    await reader.page.goto(at(path));
    await reader.page.locator('h1').waitFor();
    await reader.settled();
    reader.faults.push(...(await shiftFault(reader.page, `demo-${name}-${suffix}`)));
    await reader.look(`demo-${name}-${suffix}`);
    await reader.overflow(`demo-${name}-${suffix}`);
  }
}

/** Pages of single things: a list, and the beginning of the links in it. */
const SINGLE = {
  group: [`/jank?${PAIR}`, '/jank/'],
  session: ['/sessions', '/sessions/'],
};

async function pages_of_single_things_do_not_move_while_they_load(reader) {
  const { page } = reader;
  await watchShifts(page);
  for (const [name, [list, link]] of Object.entries(SINGLE)) {
    await page.goto(at(list));
    await reader.settled();
    const first = page.getByRole('main').locator(`td a[href^="${link}"]`).first();
    await page.goto(await first.getAttribute('href'));
    await page.locator('h1').waitFor();
    await reader.settled();
    reader.faults.push(...(await shiftFault(page, `the page of a ${name}`)));
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
  pages_of_single_things_do_not_move_while_they_load,
  the_demo_in_dark_colours,
  the_demo_on_a_tablet,
  the_demo_on_a_narrow_screen,
];
