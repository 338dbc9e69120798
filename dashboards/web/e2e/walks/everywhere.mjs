// Checks of every page: back button, filters in the URL, keyboard, dark colours, narrow screens.
import { shiftFault, watchShifts } from '../layout_shift.mjs';
import { check } from '../reader.mjs';
import { PROJECT } from '../server.mjs';

/** These pages are almost empty here. Other walks check them with data in all colours and widths. */
const DATA_PAGES = {
  overview: '/',
  versions: '/versions',
  jank: '/jank',
  hangs: '/hangs',
  'app-starts': '/app-starts',
  frames: '/frames',
  'page-loads': '/page-loads',
  spans: '/spans',
  traces: '/traces',
  traffic: '/traffic',
  resources: '/resources',
  ingest: '/ingest',
};
const PAGES = {
  config: '/config',
  'config-device': '/config?tab=device',
  history: '/config?tab=history',
  rules: '/rules',
  projects: '/projects',
  keys: '/keys',
  'device-keys': '/device-keys',
  tokens: '/tokens',
  people: '/people',
  data: '/data',
  'data-scrubbing': '/data?tab=scrubbing',
  'data-erasure': '/data?tab=erasure',
  symbols: '/symbols',
  'symbols-upload': '/symbols?tab=upload',
  'source-links': '/symbols?tab=links',
  audit: '/audit',
  'audit-all': '/audit?of=installation',
  account: '/account',
};

const ALERT_PAGES = {
  incidents: '/incidents',
  'alert-rules': '/alert-rules',
  notifications: '/notifications',
  mutes: '/mutes',
};

/** Tabs and pages that have no link in the navigation. */
const FURTHER_PAGES = {
  flame: '/jank?tab=flame',
  'jank-trend': '/jank?tab=trend',
  'single-hangs': '/hangs?tab=events',
  recompositions: '/spans?tab=recompositions',
  'ingest-clocks': '/ingest?tab=clocks',
  'ingest-sdks': '/ingest?tab=sdks',
  'notifications-log': '/notifications?tab=log',
  digest: '/notifications?tab=digest',
  'alert-templates': '/alert-rules/new',
  'alert-rule': '/alert-rules/new?template=blank',
  'rules-history': '/rules?tab=history',
  'data-opentelemetry': '/data?tab=opentelemetry',
  start: '/start',
};
/** Pages with wide tables or forms, whose parts stand below each other on a narrow screen. Other walks measure pages with data. */
const NARROW_PAGES = ['config', 'rules', 'projects', 'keys', 'people', 'data', 'symbols', 'audit'];

async function seeEvery(reader, suffix, pages = PAGES) {
  const { page } = reader;
  for (const [name, path] of Object.entries(pages)) {
    await page.goto(`${path}${path.includes('?') ? '&' : '?'}project=${PROJECT}`);
    await page.locator('h1').waitFor();
    await reader.look(`${name}-${suffix}`);
    await reader.overflow(`${name}-${suffix}`);
  }
}

async function the_back_button_and_filters_in_the_address(reader) {
  const { page } = reader;
  // The list of values may be missing.
  reader.expect(404);
  await page.goto(`/spans?project=${PROJECT}`);
  await page.getByRole('button', { name: 'Last 7 days' }).click();
  await page.getByRole('option', { name: 'Last 24 hours' }).click();
  await page.waitForURL(/range=24h/);
  await page.getByRole('button', { name: 'Add filter' }).click();
  await page.getByRole('option', { name: 'App version' }).click();
  // The values open at once.
  await page.getByRole('combobox').fill('4.12.0');
  await page.getByRole('option', { name: '4.12.0' }).waitFor();
  await page.keyboard.press('Enter');
  await page.waitForURL(/app_version=4.12.0/);
  await reader.look('filters');
  await page.keyboard.press('Escape');
  await page.getByRole('navigation').getByRole('link', { name: 'Jank' }).click();
  await page.waitForURL(/\/jank\?.*app_version=4.12.0/);
  const focused = await page.waitForFunction(() => document.activeElement?.tagName === 'H1');
  check(await focused.jsonValue(), 'the title has no focus');
  check((await page.title()) === 'Jank · unjank', await page.title());
  await page.goBack();
  await page.waitForURL(/\/spans\?/);
  await page.getByRole('heading', { name: 'Spans', exact: true }).waitFor();
  await page.getByRole('button', { name: 'Remove the filter App version' }).click();
  await page.waitForURL((url) => !url.search.includes('app_version'));
  await page.goBack();
  await page.getByRole('button', { name: 'App version: 4.12.0' }).waitFor();
}

async function an_unknown_address_says_so_and_the_keyboard_skips_to_the_page(reader) {
  const { page } = reader;
  await page.goto('/nothing/here');
  await page.getByText('Page not found').waitFor();
  await page.goto(`/keys?project=${PROJECT}`);
  await page.getByRole('table').waitFor();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  const focused = await page.evaluate(() => document.activeElement?.id);
  check(focused === 'main', `the focus is on ${focused}`);
}

async function unsaved_changes_are_not_lost_by_a_click(reader) {
  const { page } = reader;
  await page.goto(`/config?project=${PROJECT}&view=json`);
  await page.getByLabel('Base document').fill('{ }');
  const asked = page.waitForEvent('dialog').then((dialog) => dialog.dismiss());
  await page.getByRole('navigation').getByRole('link', { name: 'Stack rules', exact: true }).click();
  await asked;
  check(new URL(page.url()).pathname === '/config', 'the page was left');
}

async function every_page_in_light_colours(reader) {
  await seeEvery(reader, 'light', { ...DATA_PAGES, ...PAGES });
}

async function every_page_of_settings_in_dark_colours(reader) {
  await seeEvery(reader, 'dark');
}
every_page_of_settings_in_dark_colours.options = { colorScheme: 'dark' };

async function every_page_of_settings_on_a_narrow_screen(reader) {
  await seeEvery(reader, 'narrow');
  const { page } = reader;
  await page.getByRole('button', { name: 'Open navigation' }).click();
  await reader.look('navigation-narrow');
  await page.getByRole('link', { name: 'People' }).click();
  await page.getByRole('heading', { name: 'People', exact: true }).waitFor();
}
every_page_of_settings_on_a_narrow_screen.options = { viewport: { width: 400, height: 800 } };

async function no_page_moves_while_it_loads(reader) {
  await noneMoves(reader, { ...DATA_PAGES, ...PAGES, ...ALERT_PAGES, ...FURTHER_PAGES });
}

async function no_page_of_settings_moves_on_a_narrow_screen(reader) {
  const settings = Object.fromEntries(NARROW_PAGES.map((name) => [`${name}-narrow`, PAGES[name]]));
  await noneMoves(reader, { ...settings, ...ALERT_PAGES, start: FURTHER_PAGES.start });
}
no_page_of_settings_moves_on_a_narrow_screen.options = { viewport: { width: 400, height: 800 } };

async function noneMoves(reader, pages) {
  const { page } = reader;
  await watchShifts(page);
  for (const [name, path] of Object.entries(pages)) {
    await page.goto(`${path}${path.includes('?') ? '&' : '?'}project=${PROJECT}`);
    await page.locator('h1').waitFor();
    await reader.settled();
    reader.faults.push(...(await shiftFault(page, name)));
  }
}

async function colours_are_chosen_and_kept(reader) {
  const { page } = reader;
  await page.goto(`/keys?project=${PROJECT}`);
  await page.getByRole('button', { name: 'Dark colours' }).click();
  await page.reload();
  await page.getByRole('button', { name: 'Light colours' }).waitFor();
}

/** In this order, because later walks depend on earlier ones. */
export const walks = [
  the_back_button_and_filters_in_the_address,
  an_unknown_address_says_so_and_the_keyboard_skips_to_the_page,
  unsaved_changes_are_not_lost_by_a_click,
  every_page_in_light_colours,
  every_page_of_settings_in_dark_colours,
  every_page_of_settings_on_a_narrow_screen,
  no_page_moves_while_it_loads,
  no_page_of_settings_moves_on_a_narrow_screen,
  colours_are_chosen_and_kept,
];
