// The path from a regression of the demo to its cause: the code, its owner, a trace and Perfetto, in few clicks.
import { check } from '../reader.mjs';

const DAY_MS = 86_400_000;
const midnight = new Date(Math.floor(Date.now() / DAY_MS) * DAY_MS);
const second = (date) => date.toISOString().replace('.000Z', 'Z');
const MONTH = `from=${second(new Date(midnight.getTime() - 30 * DAY_MS))}&to=${second(midnight)}`;
const CAUSE = 'OrderDao.insert';
const MOST_CLICKS = 5;

/** Clicks, and counts the clicks. */
class Clicks {
  count = 0;

  async on(target) {
    this.count += 1;
    await target.click();
  }

  check(what) {
    check(this.count <= MOST_CLICKS, `${what} takes ${this.count} clicks`);
  }
}

/** Checks that the page of the span shows the cause and its owner. */
async function cause(reader) {
  const { page } = reader;
  await page.getByRole('heading', { level: 1, name: 'checkout' }).waitFor();
  await reader.settled();
  const moved = page.getByRole('table', { name: 'What moved inside' });
  const first = await moved.locator('tbody tr').first().innerText();
  check(first.includes(CAUSE), `the cause is not first: ${first}`);
  check(first.includes('to the main thread'), `the move to the main thread is not shown: ${first}`);
  check(/team-/.test(first), `the owner of the cause is not shown: ${first}`);
  check(/(\d+ m?s of|all) [\d.]+ m?s/.test(first), `what the cause explains is not shown: ${first}`);
  const janks = page.getByRole('table', { name: 'Janks at the same time' });
  const jank = janks.locator('tbody tr').filter({ hasText: CAUSE }).first();
  check(/new/.test(await jank.innerText()), 'the jank is not new');
  const headings = await janks.locator('thead th').allInnerTexts();
  const owner = await jank
    .locator('td')
    .nth(headings.findIndex((text) => text.includes('Owner')))
    .innerText();
  check(owner.trim() !== '' && owner !== '–', 'the cause has no owner');
  const place = await moved.evaluate((table) => table.getBoundingClientRect().top);
  check(place < 1200, `the table of changes is ${place} px down the page`);
}

/** Opens a trace with the cause from the page of the span, and downloads its file. */
async function traceAndFile(reader, clicks) {
  const { page } = reader;
  await clicks.on(page.getByRole('link', { name: new RegExp(`Typical trace of .*${CAUSE.replace('.', '\\.')}`) }));
  await page.waitForURL(/\/traces\/[0-9a-f]{32}/);
  await page.getByRole('region', { name: 'Chosen span' }).getByRole('heading', { name: CAUSE }).waitFor();
  const file = page.waitForEvent('download');
  await clicks.on(page.getByRole('button', { name: 'Perfetto file' }));
  check((await file).suggestedFilename().endsWith('.trace.json'), 'no file');
}

async function the_cause_of_a_worse_span_is_five_clicks_from_the_overview(reader) {
  const { page } = reader;
  const clicks = new Clicks();
  await page.goto(`/?${MONTH}`);
  await clicks.on(
    page.getByRole('region', { name: 'What changed' }).getByRole('link', { name: 'checkout', exact: true }),
  );
  await cause(reader);
  await reader.look('causes-span');
  await traceAndFile(reader, clicks);
  clicks.check('the cause');
  await reader.look('causes-trace');
}

async function the_cause_is_five_clicks_from_the_list_of_spans(reader) {
  const { page } = reader;
  const clicks = new Clicks();
  await page.goto(`/spans?find=checkout&${MONTH}`);
  await clicks.on(page.getByRole('link', { name: 'checkout', exact: true }));
  await clicks.on(page.getByRole('link', { name: /^Compare .* with / }));
  await cause(reader);
  await page.getByRole('table', { name: 'By device' }).getByText('Device class').first().waitFor();
  await page.getByRole('group', { name: 'Percentile' }).getByRole('button', { name: 'p95' }).click();
  await page.waitForURL(/percentile=p95/);
  await page.getByRole('heading', { name: 'p95 over time' }).waitFor();
  const typical = page.getByRole('region', { name: /^Typical, near p50/ }).first();
  await typical.getByRole('link').first().waitFor();
  await traceAndFile(reader, clicks);
  clicks.check('the cause');
}

async function a_jank_leads_to_the_spans_around_it_and_a_trace_to_its_janks(reader) {
  const { page } = reader;
  await page.goto(`/spans?name=checkout&app_version=4.12.0&base_app_version=4.11.0&${MONTH}`);
  const janks = page.getByRole('region', { name: 'Janks at the same time' }).first();
  await janks.getByRole('link', { name: new RegExp(CAUSE) }).click();
  await page.getByRole('heading', { level: 1, name: new RegExp(CAUSE) }).waitFor();
  await page.getByRole('tab', { name: 'Single janks' }).click();
  await page
    .getByRole('link', { name: /^Trace of / })
    .first()
    .click();
  await page.waitForURL(/\/traces\/[0-9a-f]{32}/);
  const inside = page.getByRole('region', { name: 'Janks at the same time' }).first();
  await inside.getByRole('link', { name: new RegExp(CAUSE) }).waitFor();
  const session = page.getByRole('link', { name: 'Session timeline' });
  check(/^\/sessions\/[0-9a-f-]{36}/.test(await session.getAttribute('href')), 'no session');
}

/** A stand-in for Perfetto, which tests do not reach: it replies to the handshake and keeps the trace. */
const PERFETTO = `<!doctype html><title>Perfetto</title><script>
  addEventListener('message', ({ source, data }) => {
    if (data === 'PING') source.postMessage('PONG', '*');
    if (data.perfetto) window.given = { ...data.perfetto, text: new TextDecoder().decode(data.perfetto.buffer) };
  });
</script>`;

async function a_trace_is_handed_over_to_perfetto_in_the_browser(reader) {
  const { page, context } = reader;
  await context.route('https://ui.perfetto.dev/**', (route) =>
    route.fulfill({ contentType: 'text/html', body: PERFETTO }),
  );
  await page.goto(`/traces?name=checkout&${MONTH}`);
  await page.getByRole('table').getByRole('link', { name: 'checkout', exact: true }).first().click();
  const opened = context.waitForEvent('page');
  await page.getByRole('button', { name: 'Open in Perfetto' }).click();
  const viewer = await opened;
  await viewer.waitForFunction(() => window.given);
  const given = await viewer.evaluate(() => ({ ...window.given, buffer: null }));
  const { traceEvents } = JSON.parse(given.text);
  check(
    traceEvents.some((event) => event.ph === 'X' && event.name === 'checkout'),
    'the trace was not handed over',
  );
  check(given.title.startsWith('checkout, '), `its title is ${given.title}`);
  check(given.fileName.endsWith('.trace.json'), `its name is ${given.fileName}`);
  await viewer.close();
}

async function pages_of_unknown_ids_say_so_and_offer_no_downloads(reader) {
  const { page } = reader;
  reader.expect(404);
  const unknown = {
    '/traces/0123456789abcdef0123456789abcdef': 'No trace with this id',
    '/traces/checkout': 'No trace with this id',
    '/jank/12345': 'No such jank group',
    '/jank/abc': 'No such jank group',
    '/installs/00000000-0000-4000-8000-000000000000': 'No such install',
    '/installs/abc': 'No such install',
    '/incidents/nothing': 'No incident with this id',
    '/alert-rules/nothing': 'No alert rule with this id',
    '/spans?name=no_such_span': 'No such span',
  };
  for (const [path, title] of Object.entries(unknown)) {
    await page.goto(path);
    await page.getByRole('heading', { name: title }).waitFor();
    check((await page.getByRole('button', { name: /Perfetto/ }).count()) === 0, `${path} offers a file`);
  }
  await reader.look('unknown-span');
  // A span that only the filters hide is not unknown.
  await page.goto('/spans?name=checkout&app_version=0.0.1');
  await page.getByRole('link', { name: 'Show the last 90 days without filters' }).click();
  await page.getByRole('heading', { level: 1, name: 'checkout' }).waitFor();
  await page.getByRole('region', { name: 'Janks at the same time' }).first().waitFor();
}

async function names_in_the_waterfall_can_be_read_on_a_narrow_screen(reader) {
  const { page } = reader;
  await page.goto(`/traces?name=checkout&root=true&${MONTH}`);
  await page.getByRole('table').getByRole('link', { name: 'checkout', exact: true }).first().click();
  const waterfall = page.getByRole('application');
  await waterfall.waitFor();
  await reader.look('waterfall-narrow');
  await reader.overflow('waterfall-narrow');
  // A tap on a row selects its span. A row is as high as its name and its bar together.
  const { width } = await waterfall.boundingBox();
  await waterfall.click({ position: { x: width - 8, y: 22 + 36 * 2 + 8 } });
  const chosen = page.getByRole('region', { name: 'Chosen span' }).first();
  const second = await chosen.getByRole('heading', { level: 2 }).innerText();
  check(second !== 'checkout', 'the second row is the first span');
  await waterfall.focus();
  await page.keyboard.press('ArrowUp');
  await chosen.getByRole('heading', { level: 2, name: 'checkout' }).waitFor();
}
names_in_the_waterfall_can_be_read_on_a_narrow_screen.options = { viewport: { width: 400, height: 800 } };

/** In any order, on the demo, after its login. */
export const walks = [
  the_cause_of_a_worse_span_is_five_clicks_from_the_overview,
  the_cause_is_five_clicks_from_the_list_of_spans,
  a_jank_leads_to_the_spans_around_it_and_a_trace_to_its_janks,
  a_trace_is_handed_over_to_perfetto_in_the_browser,
  pages_of_unknown_ids_say_so_and_offer_no_downloads,
  names_in_the_waterfall_can_be_read_on_a_narrow_screen,
];
