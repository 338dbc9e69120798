// The charts, on a page with made-up data and the content security policy of the server.
import { execFileSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { check } from '../reader.mjs';

const root = new URL('../../', import.meta.url).pathname;
const HOST = 'http://gallery.localhost';
const TYPES = { html: 'text/html', js: 'text/javascript', css: 'text/css' };

async function openGallery(reader, state) {
  const { page } = reader;
  if (!state.gallery) {
    execFileSync('npx', ['vite', 'build', '--logLevel', 'warn', '--config', 'e2e/gallery/vite.config.ts'], {
      cwd: root,
    });
    const headers = (await page.request.get('/', { headers: { accept: 'text/html' } })).headers();
    state.gallery = headers['content-security-policy'];
    check(state.gallery.includes("default-src 'self'"), 'the server sends no policy');
  }
  await page.route(`${HOST}/**`, (route) => {
    const { pathname } = new URL(route.request().url());
    const file = pathname === '/' ? '/index.html' : pathname;
    const type = TYPES[file.split('.').at(-1)];
    if (!type) return route.fulfill({ status: 204 });
    const headers = { 'content-type': type, 'content-security-policy': state.gallery };
    return route.fulfill({ body: readFileSync(`${root}.generated/gallery${file}`), headers });
  });
  await page.goto(`${HOST}/`);
  await page.getByRole('heading', { name: 'Charts' }).waitFor();
}

async function charts_draw_zoom_and_have_their_numbers_behind_them(reader, state) {
  const { page } = reader;
  await openGallery(reader, state);
  await reader.look('charts');
  // Dragging across the lines sets the period in the URL.
  const lines = await page
    .getByRole('img', { name: /lines over time/ })
    .first()
    .boundingBox();
  await page.mouse.move(lines.x + 100, lines.y + 60);
  await page.mouse.down();
  await page.mouse.move(lines.x + 300, lines.y + 70, { steps: 5 });
  await page.mouse.up();
  await page.waitForURL(/from=.*&to=/);
  await page.goBack();
  // A click on a frame zooms in, Escape zooms out, and a search shows the share of its matches.
  const flame = page.getByRole('application');
  await flame.click({ position: { x: 60, y: 30 } });
  await page.getByText('MainActivity.onCreate: 62, 62 % of all').first().waitFor();
  await page.getByRole('button', { name: 'Whole graph' }).waitFor();
  await page.keyboard.press('ArrowDown');
  await page.getByText('FeedParser.parse: 40, 40 % of all').waitFor();
  await page.keyboard.press('Escape');
  await page.getByRole('button', { name: 'Whole graph' }).waitFor({ state: 'detached' });
  await page.getByLabel('Search functions').fill('com.example');
  await page.getByText('71 % of all').waitFor();
  for (const button of await page.getByRole('button', { name: 'Show as table' }).all()) await button.waitFor();
  while ((await page.getByRole('button', { name: 'Show as table' }).count()) > 0) {
    await page.getByRole('button', { name: 'Show as table' }).first().click();
  }
  check((await page.getByRole('table').count()) === 4, 'a chart has no table');
  await reader.look('charts-as-tables');
}

async function charts_in_dark_colours(reader, state) {
  await openGallery(reader, state);
  await reader.look('charts-dark');
}
charts_in_dark_colours.options = { colorScheme: 'dark', viewport: { width: 1400, height: 1700 } };

async function charts_on_a_narrow_screen(reader, state) {
  await openGallery(reader, state);
  await reader.look('charts-narrow');
  await reader.overflow('charts-narrow');
}
charts_on_a_narrow_screen.options = { viewport: { width: 400, height: 1900 } };

export const walks = [
  charts_draw_zoom_and_have_their_numbers_behind_them,
  charts_in_dark_colours,
  charts_on_a_narrow_screen,
];
