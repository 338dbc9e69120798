// Takes the screenshots in the README of the project, on the data of the demo. Fails if a file is too large for the repository.
import { mkdirSync, statSync } from 'node:fs';
import { openBrowser } from './browser.mjs';
import { startDemo } from './server.mjs';

const folder = new URL('../../../docs/pictures/', import.meta.url).pathname;
const MOST_BYTES = 150_000;
const INSTALLS = 400;
const PAIR = 'app_version=4.12.0&base_app_version=4.11.0';
const WIDE = { width: 1400, height: 700 };
const HIGH = { width: 1240, height: 900 };
const CONFIGURATION = {
  base: { sampling: { janks: 0.2, page_loads: 0.5 } },
  overrides: [
    {
      id: 'closer-look-at-checkout',
      note: 'slower since 4.12',
      expires_at: new Date(Date.now() + 30 * 86_400_000).toISOString(),
      when: { all: [{ os_name: ['android'] }, { app_version: '>=4.12' }, { percentage: { percent: 10 } }] },
      patch: { sampling: { janks: 1 }, tracing: { enabled: true } },
    },
  ],
};

mkdirSync(folder, { recursive: true });
const demo = await startDemo(INSTALLS);
const browser = await openBrowser();
try {
  const context = await browser.newContext({ baseURL: demo.url, viewport: WIDE });
  const page = await context.newPage();
  await page.goto('/');
  await page.getByLabel('E-mail address').fill(demo.email);
  await page.getByLabel('Password').fill(demo.password);
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor();
  const data = { expected_revision: 0, configuration: CONFIGURATION, note: 'look closer at checkout on Android' };
  const saved = await page.request.put('/api/v1/projects/shop/config', { data });
  if (!saved.ok()) throw new Error(`the configuration was not saved: ${await saved.text()}`);

  await page.goto('/?range=30d');
  await take(page, 'overview');
  await page.setViewportSize(HIGH);
  await page.goto('/jank?range=30d&app_version=4.12.0');
  await page.getByRole('link', { name: /OrderDao\.insert/ }).click();
  await page.getByRole('tab', { name: 'Flame graph' }).click();
  await page.getByRole('application').waitFor();
  await take(page, 'jank');
  await page.setViewportSize(WIDE);
  await page.goto(`/spans?range=30d&${PAIR}`);
  await take(page, 'spans');
  await page.setViewportSize(HIGH);
  await page.goto('/config');
  await page.getByText('closer-look-at-checkout').first().waitFor();
  await take(page, 'remote-config');
} finally {
  await browser.close();
  await demo.stop();
}

async function take(page, name) {
  await page.waitForLoadState('networkidle');
  await page.waitForFunction(() => !document.querySelector('[aria-busy=true], [role=status][aria-label=Loading]'));
  await page.mouse.move(0, 0);
  const path = `${folder}${name}.png`;
  await page.screenshot({ path });
  const { size } = statSync(path);
  console.log(`${name}.png ${Math.round(size / 1000)} kB`);
  if (size > MOST_BYTES) throw new Error(`${path} is larger than ${MOST_BYTES / 1000} kB`);
}
