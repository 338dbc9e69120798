// Runs the walks through the pages of real servers in a real browser.
import { appendFileSync } from 'node:fs';
import { openBrowser } from './browser.mjs';
import { startSingleSignOn } from './identity_provider.mjs';
import { Reader } from './reader.mjs';
import { startDemo, startServer } from './server.mjs';
import * as account from './walks/account.mjs';
import * as admin from './walks/admin.mjs';
import * as alerts from './walks/alerts.mjs';
import * as causes from './walks/causes.mjs';
import * as charts from './walks/charts.mjs';
import * as config from './walks/config.mjs';
import * as projectData from './walks/data.mjs';
import * as demo from './walks/demo.mjs';
import * as demoScreens from './walks/demo_screens.mjs';
import * as demoSpans from './walks/demo_spans.mjs';
import * as entrance from './walks/entrance.mjs';
import * as everywhere from './walks/everywhere.mjs';
import * as jankGroups from './walks/jank_groups.mjs';
import * as opentelemetry from './walks/opentelemetry.mjs';
import * as quality from './walks/quality.mjs';
import * as reach from './walks/reach.mjs';
import * as releases from './walks/releases.mjs';
import * as rollout from './walks/rollout.mjs';
import * as rules from './walks/rules.mjs';
import * as savedViews from './walks/saved_views.mjs';
import * as sessions from './walks/sessions.mjs';
import * as singleSignOn from './walks/single_sign_on.mjs';
import * as spansToIngest from './walks/spans_to_ingest.mjs';
import * as symbols from './walks/symbols.mjs';

const parts = {
  ...{
    entrance,
    charts,
    admin,
    account,
    projectData,
    config,
    rules,
    quality,
    spansToIngest,
    symbols,
    jankGroups,
    rollout,
    sessions,
    savedViews,
    everywhere,
    opentelemetry,
  },
  ...{ demo, demoSpans, demoScreens, causes, releases, reach, alerts, singleSignOn },
};
/**
 * `npm run e2e -- NAME…` runs the parts NAME of `parts` and all walks whose name contains a NAME. It first logs in, but runs no other
 * walks that they need: name those as well.
 */
const names = process.argv.slice(2);
const isAsked = (part, walk) => names.length === 0 || names.some((name) => name === part || walk.name.includes(name));
const asked = Object.entries(parts).flatMap(([part, { walks }]) => walks.filter((walk) => isAsked(part, walk)));
const DEMO_PARTS = [demo, demoSpans, demoScreens, causes, releases, reach, alerts];
const onDemo = (walk) => DEMO_PARTS.some(({ walks }) => walks.includes(walk));
const onProvider = (walk) => singleSignOn.walks.includes(walk);
const onEmpty = (walk) => !onDemo(walk) && !onProvider(walk);
const chosen = new Set([
  ...(asked.some(onEmpty) ? entrance.walks : []),
  ...(asked.some(onDemo) ? demo.walks.slice(0, 1) : []),
  ...(asked.some(onProvider) ? singleSignOn.walks : []),
  ...asked,
]);
const walks = Object.values(parts).flatMap((part) => part.walks.filter((walk) => chosen.has(walk)));

/** The server of the walks that need no data of the demo. */
const startShop = () => startServer(['--web-origins', opentelemetry.SHOP]);

const RENEWED_MS = 4 * 60_000;
const start = Date.now();
/** Walks that share a server, and how to start it. The groups run at the same time. */
const groups = [
  { walks: walks.filter(onEmpty), open: startShop, state: ({ url, setUp, sql }) => ({ url, setUp, sql }) },
  { walks: walks.filter(onDemo), open: startDemo, state: (demo) => ({ demo }) },
  { walks: walks.filter(onProvider), open: startSingleSignOn, state: (sso) => ({ url: sso.url, sso }) },
].filter((group) => group.walks.length > 0);
const browser = await openBrowser();
const failed = [];
try {
  // Every group stops its own servers, also if another one cannot start.
  const ended = await Promise.allSettled(groups.map(runTwice));
  const broken = ended.find(({ status }) => status === 'rejected');
  if (broken) throw broken.reason;
} finally {
  await browser.close();
}

/**
 * Runs a group. If a walk fails, the whole group runs once more on a fresh server, because walks build on each other: the walks that
 * failed only once are flaky.
 */
async function runTwice(group) {
  const first = await run(group);
  if (first.length === 0) return;
  console.log(`${first.length} walks failed. Their group runs once more on a fresh server: ${first.join(', ')}`);
  const second = await run(group);
  failed.push(...second);
  say(first.filter((name) => !second.includes(name)).map((name) => `FLAKY walk ${name}`));
}

/** Prints lines, also into the list at the end of `.ci/run`. */
function say(lines) {
  lines.forEach((line) => console.log(line));
  const list = process.env.UNJANK_CI_LIST;
  if (list) appendFileSync(list, lines.map((line) => `${line}\n`).join(''));
}

/** Runs the walks of a group on a fresh server. Returns the names of those that failed. */
async function run({ walks, open, state }) {
  const server = await open();
  try {
    return await inOrder(walks, state(server));
  } finally {
    await server.stop();
  }
}

/** Runs walks one after the other, because later walks depend on earlier ones. Returns the names of those that failed. */
async function inOrder(walks, state) {
  const failed = [];
  for (const walk of walks) {
    if (await goes(walk, state)) continue;
    failed.push(walk.name);
    // Without a session, all later walks would fail.
    if (walk.keepsSession || entrance.walks.includes(walk)) break;
  }
  return failed;
}

/** Passes refreshed session cookies to the next walk, because the server ends a session if its old cookie is used again. */
async function keepRenewed(reader, state) {
  const cookies = await reader.context.cookies();
  if (state.storage && cookies.length === state.storage.cookies.length) state.storage = { ...state.storage, cookies };
}

/** Renews an old session, because walks also call the API without a page, which would renew it. An access token lasts ten minutes. */
async function renew(reader, state) {
  if (!state.storage || Date.now() - state.renewedAt < RENEWED_MS) return;
  const answer = await reader.page.request.post('/api/v1/session/refresh');
  if (!answer.ok()) throw new Error(`the session is not renewed: ${answer.status()} ${await answer.text()}`);
  state.renewedAt = Date.now();
}

async function goes(walk, state) {
  const begin = Date.now();
  const url = state.demo?.url ?? state.url;
  const reader = await Reader.open(browser, url, { storageState: state.storage, ...walk.options });
  const faults = [];
  try {
    if (!('storageState' in (walk.options ?? {}))) await renew(reader, state);
    await walk(reader, state);
  } catch (error) {
    await reader.page.screenshot({ path: new URL(`./shots/failed-${walk.name}.png`, import.meta.url).pathname });
    faults.push(error.stack ?? error.message);
  }
  if (walk.keepsSession) {
    state.storage = await reader.context.storageState();
    state.renewedAt = Date.now();
  } else if (!('storageState' in (walk.options ?? {}))) await keepRenewed(reader, state);
  faults.push(...(await reader.close()));
  const title = walk.name.replaceAll('_', ' ');
  console.log(`${faults.length === 0 ? 'ok  ' : 'FAIL'} ${title} (${seconds(begin)} s)`);
  faults.forEach((fault) => console.log(`  ${fault}`));
  return faults.length === 0;
}

function seconds(since) {
  return ((Date.now() - since) / 1000).toFixed(1);
}

say(failed.map((name) => `FAILED walk ${name}`));
console.log(
  failed.length === 0
    ? `${walks.length} walks, no faults, ${seconds(start)} s`
    : `${failed.length} of ${walks.length} walks failed`,
);
process.exit(failed.length === 0 ? 0 : 1);
