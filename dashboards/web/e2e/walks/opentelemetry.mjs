// Web pages that report with OpenTelemetry's SDK for browsers, from an origin that the server allows and from another one.
import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import { build } from 'vite';
import { followClock } from '../browser.mjs';
import { check } from '../reader.mjs';
import { freePort } from '../server.mjs';
import { ingestKey } from './spans_to_ingest.mjs';

const port = await freePort();
/** The origin of the shop's pages that the server allows. */
export const SHOP = `http://127.0.0.1:${port}`;
/** The same pages under a name that the server does not allow. */
const STRANGER = `http://localhost:${port}`;
/** A project of its own, because other walks fill the names of theirs. */
const WEB = 'web';
const root = new URL('../../../../', import.meta.url).pathname;
const SCRIPT = `${root}server/tests/opentelemetry-web/shop.mjs`;
const PACKAGES = `${root}.cache/opentelemetry-web`;

/** All that is stored of a session: the names of parents, and the beginnings of events. */
const stored = ({
  install,
  session,
}) => `SELECT one.name AS name, kind, status, app_id, app_version, os_name, locale, attributes,
    arrayMap(event -> substring(event, 1, 48), one.\`events.name\`) AS events, parents.name AS parent
  FROM spans AS one LEFT JOIN (SELECT span_id, name FROM spans) AS parents ON parents.span_id = one.parent_span_id
  WHERE install_id = '${install}' AND session_id = '${session}' ORDER BY name`;
const SCOPE = { 'otel.scope.name': 'shop.web', 'otel.scope.version': '1.0' };
const PAGE = {
  app_id: 'com.example.shop.web',
  app_version: '4.12.0',
  os_name: 'linux',
  locale: 'de-DE',
};
const SPANS = [
  {
    ...{ name: 'GET', kind: 'network', status: 'error', ...PAGE },
    attributes: {
      'http.request.method': 'GET',
      'url.full': 'https://api.example.com/pay',
      'span.kind': 'client',
      'otel.status_description': 'no money',
      ...SCOPE,
    },
    events: ['exception exception.type=Error exception.message'],
    parent: 'web checkout',
  },
  {
    ...{ name: 'web checkout', kind: 'manual', status: 'ok', ...PAGE },
    attributes: {
      ...{ items: '3', free: 'true', price: '9.5' },
      ...{ names: '["a","ä"]', sizes: '[1,2]', ratios: '[0.5]', flags: '[true,false]' },
      ...SCOPE,
    },
    events: ['paid by=card'],
    parent: '',
  },
  {
    ...{ name: 'web farewell', kind: 'manual', status: 'unset', ...PAGE },
    attributes: SCOPE,
    events: [],
    parent: '',
  },
];

/** Checks that the script of the shop has the code of the documentation. */
function followsDocumentation() {
  const documented = /^\/\*\* Returns an id [^]*?^\}$/m.exec(readFileSync(`${root}docs/opentelemetry.md`, 'utf8'));
  check(
    documented && readFileSync(SCRIPT, 'utf8').includes(documented[0]),
    'shop.mjs differs from docs/opentelemetry.md',
  );
}

/** The ids under which a page reports. */
function idsOf(page) {
  return page.evaluate(() => ({
    install: localStorage.getItem('app.installation.id'),
    session: sessionStorage.getItem('session.id'),
  }));
}

/** Bundles the script of the shop's pages with the packages that `make setup` installs. */
async function bundle() {
  if (!existsSync(PACKAGES)) throw new Error(`${PACKAGES} is missing: run \`make setup\`, which installs it`);
  const packages = {
    name: 'packages',
    resolveId(id, importer) {
      return importer === SCRIPT ? this.resolve(id, `${PACKAGES}/shop.mjs`) : undefined;
    },
  };
  const [{ output }] = await build({
    configFile: false,
    logLevel: 'error',
    plugins: [packages],
    build: { write: false, lib: { entry: SCRIPT, formats: ['es'] } },
  });
  return output[0].code;
}

/** Opens a page of the shop and lets it send. Returns it with `refused`, the first error in its console that names CORS. */
async function openShop(browser, origin) {
  const context = await browser.newContext();
  if (process.env.LD_PRELOAD) await followClock(context);
  const page = await context.newPage();
  const refused = page.waitForEvent('console', (message) => message.text().includes('CORS policy'));
  await page.goto(origin);
  await page.waitForFunction(() => 'flush' in window);
  return { page, refused };
}

/** Serves the page of the shop on all its origins while `walk` runs. */
async function withShop(settings, walk) {
  const page = `<!doctype html><title>Shop</title><script>window.settings = ${JSON.stringify(settings)}</script>
    <script type="module">${(await bundle()).replaceAll('</script', '<\\/script')}</script>`;
  const server = createServer((_, answer) => answer.setHeader('content-type', 'text/html; charset=utf-8').end(page));
  await new Promise((resolve) => server.listen(port, resolve));
  try {
    await walk();
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

async function a_web_page_of_an_allowed_origin_reports_with_opentelemetry(reader, { url, sql }) {
  followsDocumentation();
  const { page } = reader;
  const rowsOf = async (ids, count) => {
    let rows = [];
    for (let tries = 0; tries < 120 && rows.length < count; tries += 1) {
      rows = await sql(stored(ids));
      await page.waitForTimeout(250);
    }
    return rows;
  };
  let first;
  const made = await page.request.post('/api/v1/projects', { data: { id: WEB, name: 'Web' } });
  check(made.ok(), `no project: ${made.status()} ${await made.text()}`);
  const key = await ingestKey(page, WEB);
  await withShop({ url, key }, async () => {
    const browser = page.context().browser();
    const stranger = await openShop(browser, STRANGER);
    // The exporter retries for ten seconds, which the walk does not wait for.
    await stranger.page.evaluate(() => void window.flush());
    await stranger.refused;
    await stranger.page.context().close();
    const shop = await openShop(browser, SHOP);
    shop.refused.catch(() => {});
    first = await idsOf(shop.page);
    await shop.page.evaluate(() => window.flush());
    // A span that ends when the reader leaves the page is sent, too.
    await shop.page.evaluate(() => window.last());
    await shop.page.goto('about:blank');
    const rows = await rowsOf(first, SPANS.length);
    check(isDeepStrictEqual(rows, SPANS), JSON.stringify(rows, undefined, 1));
    // Another tab of the same browser is the same install in another session.
    const tab = await shop.page.context().newPage();
    await tab.goto(SHOP);
    await tab.waitForFunction(() => 'flush' in window);
    const second = await idsOf(tab);
    check(second.install === first.install && second.session !== first.session, JSON.stringify([first, second]));
    await tab.evaluate(() => window.flush());
    check((await rowsOf(second, 2)).length === 2, 'the spans of the second tab are not stored');
    await shop.page.context().close();
  });
  await page.goto(`/spans?project=${WEB}&name=web+checkout`);
  await page.getByRole('heading', { level: 1, name: 'web checkout' }).waitFor();
  await reader.look('span-of-a-web-page');
  const ids = `SELECT replaceAll(toString(trace_id), '-', '') AS trace, leftPad(lower(hex(span_id)), 16, '0') AS span
    FROM spans WHERE session_id = '${first.session}' AND name = 'GET'`;
  const [pay] = await sql(ids);
  await page.goto(`/traces/${pay.trace}?project=${WEB}&span=${pay.span}`);
  const chosen = page.getByRole('region', { name: 'Chosen span' });
  const shown = ['com.example.shop.web 4.12.0', 'client', 'shop.web 1.0', 'no money', 'https://api.example.com/pay'];
  for (const text of shown) {
    await chosen.getByText(text, { exact: true }).first().waitFor();
  }
  await reader.look('trace-of-a-web-page');
}

export const walks = [a_web_page_of_an_allowed_origin_reports_with_opentelemetry];
