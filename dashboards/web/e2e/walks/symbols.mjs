// Stacks that need symbols: the list of missing symbols, an upload, source links, and the removal of a file. Creates its own project.
import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { check } from '../reader.mjs';

const TILL = 'till';
const MAP_ID = randomBytes(32).toString('hex');
const BUILD_ID = randomBytes(20).toString('hex');
const at = (query) => `/symbols?project=${TILL}${query ? `&${query}` : ''}`;

/** A mapping in the format of R8. `sum` was inlined into `pay`. Without a line, `c` may be `put` or `drop`. */
const MAPPING = `# compiler: R8
# compiler_version: 8.7.18
# pg_map_id: ${MAP_ID}
# pg_map_hash: SHA-256 ${MAP_ID}
com.example.till.Cart -> a.b:
# {"id":"sourceFile","fileName":"Cart.kt"}
    1:1:int com.example.till.Prices.sum(int):12:12 -> a
    1:1:void pay():30 -> a
    void put(int):40:40 -> c
    void drop(int):50:50 -> c
com.example.till.Prices -> a.c:
# {"id":"sourceFile","fileName":"Prices.kt"}
    int total -> a
`;

const LONG = '/builds/example/till/native/crates/receipts/src/printer/thermal/escape_codes.rs';
const obfuscated = (name, line) => ({ class: 'a.b', function: name, file: `r8-map-id-${MAP_ID}`, line });
const native = [
  { module: 'libtill.so', build_id: BUILD_ID, offset: 0x1a2b40 },
  { module: 'libtill.so', function: 'till::print', file: LONG, line: 77 },
];

function batch(app_version, install) {
  const start = new Date(Date.now() - 600_000 - install * 60_000).toISOString();
  const jank = (stack, duration_ms) => ({
    ...{ start, duration_ms, stack, kind: 'jank', thread: 'main', foreground: true, page: 'Till' },
    ...{ uptime_ms: 60_000, strategy: { threshold_ms: 2000, count: 1 } },
  });
  return {
    batch_id: randomUUID(),
    session_id: randomUUID(),
    resource: { app_id: 'com.example.till', app_version, build: 41_200, install_id: randomUUID(), os_name: 'android' },
    janks: [jank([obfuscated('a', 1), obfuscated('c', 0)], 3000), jank(native, 2500)],
  };
}

async function until(page, path, isDone) {
  let last;
  for (let tries = 0; tries < 240; tries += 1) {
    const answer = await page.request.get(`/api/v1/projects/${TILL}/${path}`);
    last = await answer.text();
    if (answer.ok() && isDone(JSON.parse(last))) return;
    await page.waitForTimeout(250);
  }
  throw new Error(`${path} stays ${last}`);
}

async function a_project_without_stacks_needs_no_symbols(reader, state) {
  const { page } = reader;
  const made = await page.request.post('/api/v1/projects', { data: { id: TILL, name: 'Till' } });
  check(made.ok(), `no project: ${made.status()} ${await made.text()}`);
  const key = await page.request.post(`/api/v1/projects/${TILL}/keys`, { data: { name: 'Tills' } });
  state.tillKey = (await key.json()).key;
  await until(page, 'symbols/missing', ({ missing }) => missing.length === 0);
  await page.goto(at());
  await page.getByText('No stack needs symbols').waitFor();
  await reader.look('symbols-none');
  await page.getByRole('tab', { name: 'Files' }).click();
  await page.getByText('No symbol files yet').waitFor();
  await reader.look('symbols-no-files');
}

async function missing_symbols_are_listed_and_shown_on_stacks(reader, { tillKey }) {
  const { page } = reader;
  const headers = { authorization: `Bearer ${tillKey}` };
  for (let tries = 0; tries < 50 && !(await page.request.get('/v1/config', { headers })).ok(); tries += 1) {
    await page.waitForTimeout(100);
  }
  for (const [install, version] of ['4.9.0', '4.10.0', '4.10.0'].entries()) {
    const answer = await page.request.post('/v1/ingest', { headers, data: batch(version, install) });
    check(answer.status() === 202, `a batch was rejected: ${answer.status()} ${await answer.text()}`);
    const { rejected } = await answer.json();
    check(rejected.length === 0, JSON.stringify(rejected));
  }
  await until(
    page,
    'symbols/missing',
    ({ missing }) => missing.length === 2 && missing.every((one) => one.events === 3),
  );
  await page.goto(at());
  await page
    .getByRole('row', {
      name: new RegExp(`${MAP_ID.slice(0, 12)}.* mapping or source map missing 3 .*4.10.0 \\(2\\), 4.9.0 \\(1\\)`),
    })
    .waitFor();
  await page.getByRole('row', { name: new RegExp(`${BUILD_ID.slice(0, 12)}.* libtill.so missing 3 `) }).waitFor();
  await reader.look('symbols-missing');
  await page.goto(`/jank?project=${TILL}`);
  await page.getByRole('link', { name: /a\.b/ }).first().click();
  await page.getByRole('tab', { name: 'Stacks' }).click();
  await page.getByText(`The mapping ${MAP_ID.slice(0, 12)}… is missing.`).waitFor();
  await reader.look('stack-missing-mapping');
  await page.getByRole('link', { name: 'How to upload symbols' }).click();
  await page.getByText(`--project ${TILL} --only-symbols`).waitFor();
  await page.getByText(`sentry-cli upload-proguard`).waitFor();
  await reader.look('symbols-upload');
}

/** Uploads like sentry-cli: first the chunks, then the file that they form. */
async function upload(page, token, content) {
  const headers = { authorization: `Bearer ${token}` };
  const name = createHash('sha1').update(content).digest('hex');
  const file = { name, mimeType: 'application/octet-stream', buffer: Buffer.from(content) };
  const sent = await page.request.post('/api/0/organizations/unjank/chunk-upload/', { headers, multipart: { file } });
  check(sent.ok(), `the chunk got status ${sent.status()}: ${await sent.text()}`);
  const data = { [name]: { name: 'mapping.txt', chunks: [name] } };
  for (let tries = 0; tries < 100; tries += 1) {
    const answer = await page.request.post(`/api/0/projects/unjank/${TILL}/files/difs/assemble/`, { headers, data });
    const { state, detail } = (await answer.json())[name];
    if (state === 'ok') return;
    check(state !== 'error', detail);
    await page.waitForTimeout(100);
  }
  throw new Error('the mapping is not assembled');
}

async function an_uploaded_mapping_makes_stacks_readable(reader) {
  const { page } = reader;
  const body = { name: 'build server', role: 'editor', scope: 'symbols', expires_at: null };
  const made = await page.request.post(`/api/v1/projects/${TILL}/tokens`, { data: body });
  check(made.ok(), `no token: ${made.status()} ${await made.text()}`);
  await upload(page, (await made.json()).token, MAPPING);
  await until(page, 'symbols/missing', ({ missing, repair }) => missing.length === 1 && !repair.pending);
  await page.goto(at('tab=files'));
  await page.getByRole('row', { name: /mapping.txt R8 mapping / }).waitFor();
  await reader.look('symbols-files');
}

async function source_links_are_tried_saved_and_followed(reader) {
  const { page } = reader;
  await page.goto(at('tab=links'));
  const address = page.getByLabel('Address', { exact: true });
  await address.fill('javascript:alert({path})');
  await page.getByText('Start with https:// or http://').waitFor();
  await reader.look('source-links-fault');
  await page.getByRole('button', { name: 'Save' }).click();
  check(await address.evaluate((field) => field === document.activeElement), 'the field with the fault has no focus');
  await page.getByRole('button', { name: 'GitHub' }).click();
  await page.getByText('No rule matches this path').waitFor();
  await page.getByRole('button', { name: 'Add a rule' }).click();
  await page.getByLabel('Path begins with').fill('com/example/');
  await page.getByLabel('Replace with').fill('app/src/main/java/com/example/');
  const source = (version, file, line) =>
    `https://github.com/acme/shop/blob/v${version}/app/src/main/java/com/example/${file}#L${line}`;
  await page.getByRole('link', { name: source('4.12.0', 'shop/Cart.kt', 41) }).waitFor();
  await reader.look('source-links');
  await page.getByRole('button', { name: 'Save' }).click();
  await page.getByText(/^Saved\./).waitFor();
  await page.getByText('not saved').waitFor({ state: 'detached' });

  const url = source('4.10.0', 'till/Prices.kt', 12);
  await until(page, 'janks/stacks', ({ stacks }) => stacks.some(({ frames }) => frames[0].source_url === url));
  await page.goto(`/jank?project=${TILL}`);
  await page
    .getByRole('link', { name: /Prices/ })
    .first()
    .click();
  await page.getByRole('tab', { name: 'Stacks' }).click();
  const link = page.getByRole('link', { name: 'Prices.kt:12' });
  check((await link.getAttribute('href')) === url, `the frame leads to ${await link.getAttribute('href')}`);
  check((await link.getAttribute('rel')).includes('noopener'), 'the other page gets a handle of this one');
  await page.getByText('inlined into the next').first().waitFor();
  await page.getByText('one of several', { exact: true }).first().waitFor();
  await reader.look('stack-with-links');
}

async function symbols_on_a_narrow_dark_screen(reader) {
  const { page } = reader;
  for (const tab of ['missing', 'files', 'upload', 'links']) {
    await page.goto(at(`tab=${tab}`));
    await page.getByRole('tab', { selected: true }).waitFor();
    await reader.look(`symbols-${tab}-narrow-dark`);
    await reader.overflow(`symbols-${tab}-narrow-dark`);
  }
  await page.goto(`/jank?project=${TILL}`);
  await page
    .getByRole('link', { name: /till|escape_codes/ })
    .first()
    .waitFor();
  for (const name of [/Prices/, /libtill|till::print/]) {
    await page.goto(`/jank?project=${TILL}`);
    await page.getByRole('link', { name }).first().click();
    await page.getByRole('tab', { name: 'Stacks' }).click();
    await page.locator('ol.mono').first().scrollIntoViewIfNeeded();
    await reader.look(`stack-narrow-dark-${String(name).includes('Prices') ? 'java' : 'native'}`);
    await reader.overflow('a stack');
  }
}
symbols_on_a_narrow_dark_screen.options = { viewport: { width: 400, height: 800 }, colorScheme: 'dark' };

async function a_symbol_file_is_removed(reader) {
  const { page } = reader;
  await page.goto(at('tab=files'));
  await page.getByRole('button', { name: 'Remove mapping.txt' }).click();
  await page.getByText('stay readable').waitFor();
  await reader.look('symbols-remove');
  await page.getByRole('dialog').getByRole('button', { name: 'Remove' }).click();
  await page.getByText('No symbol files yet').waitFor();
  await page.goto(`/audit?project=${TILL}`);
  for (const sentence of ['added symbol file', 'source links', 'removed symbol file']) {
    await page.getByRole('main').getByText(sentence).first().waitFor();
  }
}

/** In this order, because later walks depend on earlier ones. */
export const walks = [
  a_project_without_stacks_needs_no_symbols,
  missing_symbols_are_listed_and_shown_on_stacks,
  an_uploaded_mapping_makes_stacks_readable,
  source_links_are_tried_saved_and_followed,
  symbols_on_a_narrow_dark_screen,
  a_symbol_file_is_removed,
];
