// Measures how soon the pages of a running server show data: `UNJANK_URL=… UNJANK_EMAIL=… UNJANK_PASSWORD=… npm run paint`.
// Prints, for each page, the time from the navigation until the first numbers appear, and until all do.
import { openBrowser } from './browser.mjs';

const {
  UNJANK_URL: url,
  UNJANK_EMAIL: email,
  UNJANK_PASSWORD: password,
  UNJANK_PROJECT: project = 'default',
} = process.env;
if (!url || !email || !password) throw new Error('set UNJANK_URL, UNJANK_EMAIL and UNJANK_PASSWORD');
const TIMES = 20;
const PAGES = [
  '/',
  '/versions',
  '/jank',
  '/hangs',
  '/app-starts',
  '/frames',
  '/page-loads',
  '/spans',
  '/traces',
  '/sessions',
  '/traffic',
  '/resources',
  '/ingest',
];
/** The period of the pages. */
const DAYS = 7;

const browser = await openBrowser();
const page = await (await browser.newContext({ viewport: { width: 1400, height: 1000 } })).newPage();
await page.goto(url);
await page.getByLabel('E-mail').fill(email);
await page.getByLabel('Password').fill(password);
await page.getByRole('button', { name: 'Log in' }).click();
await page.waitForSelector('nav');
console.log('| page | first numbers p50 ms | p95 ms | all p50 ms | p95 ms |\n| --- | --- | --- | --- | --- |');
for (const path of [...PAGES, ...(await comparisons())]) {
  const first = [];
  const all = [];
  // The first visit fetches the page's code.
  for (let time = 0; time <= TIMES; time++) {
    const begun = performance.now();
    await page.goto(`${url}${path}${path.includes('?') ? '&' : '?'}project=${project}`, { waitUntil: 'commit' });
    await page.locator('main .data').first().waitFor({ timeout: 60_000 });
    first.push(performance.now() - begun);
    await page.waitForFunction(() => !document.querySelector('main .skeleton, main [aria-busy="true"]'), null, {
      timeout: 60_000,
    });
    all.push(performance.now() - begun);
  }
  console.log(`| ${path} | ${at(first, 0.5)} | ${at(first, 0.95)} | ${at(all, 0.5)} | ${at(all, 0.95)} |`);
}
await browser.close();

/** The page Spans with a comparison of the two most used versions. Nothing if there is only one. */
async function comparisons() {
  const [from, to] = [Date.now() - DAYS * 86_400_000, Date.now()].map((time) => new Date(time).toISOString());
  const query = new URLSearchParams({
    by: 'app_version',
    measure: 'sessions',
    order: '-sessions',
    limit: '2',
    from,
    to,
  });
  const answer = await page.request.get(`${url}/api/v1/projects/${project}/query/usage?${query}`);
  if (!answer.ok()) throw new Error(`no versions: ${answer.status()} ${await answer.text()}`);
  const [head, base] = (await answer.json()).rows.map(({ keys }) => encodeURIComponent(keys[0]));
  return head && base ? [`/spans?app_version=${head}&base_app_version=${base}`] : [];
}

function at(times, share) {
  const sorted = times.slice(1).sort((one, other) => one - other);
  return Math.round(sorted[Math.round((sorted.length - 1) * share)]);
}
