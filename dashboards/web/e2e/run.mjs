// Walks through the pages of a real server in a real browser, one walk after the other: later ones see what earlier ones did.
import { openBrowser } from './browser.mjs';
import { Reader } from './reader.mjs';
import { startServer } from './server.mjs';
import * as admin from './walks/admin.mjs';
import * as charts from './walks/charts.mjs';
import * as config from './walks/config.mjs';
import * as entrance from './walks/entrance.mjs';
import * as everywhere from './walks/everywhere.mjs';
import * as quality from './walks/quality.mjs';
import * as rules from './walks/rules.mjs';
import * as spansToIngest from './walks/spans_to_ingest.mjs';

const parts = { entrance, charts, admin, config, rules, quality, spansToIngest, everywhere };
/** `npm run e2e -- keys` walks through the entrance, and what is named like that or stands in a part of that name. */
const wanted = process.argv[2] ?? '';
const walks = Object.entries(parts).flatMap(([part, { walks }]) =>
  walks.filter((walk) => part === 'entrance' || part === wanted || walk.name.includes(wanted)),
);

const server = await startServer();
const browser = await openBrowser().catch(async (error) => {
  await server.stop();
  throw error;
});
const state = { url: server.url, invitation: server.invitation };
const failed = [];
try {
  for (const walk of walks) {
    const { name } = walk;
    const title = name.replaceAll('_', ' ');
    const start = Date.now();
    const reader = await Reader.open(browser, server.url, { storageState: state.storage, ...walk.options });
    const faults = [];
    try {
      await walk(reader, state);
    } catch (error) {
      await reader.page.screenshot({ path: new URL(`./shots/failed-${name}.png`, import.meta.url).pathname });
      faults.push(error.stack ?? error.message);
    }
    if (walk.keepsSession) state.storage = await reader.context.storageState();
    faults.push(...(await reader.close()));
    console.log(`${faults.length === 0 ? 'ok  ' : 'FAIL'} ${title} (${((Date.now() - start) / 1000).toFixed(1)} s)`);
    faults.forEach((fault) => console.log(`  ${fault}`));
    if (faults.length > 0) failed.push(title);
    // Without a session, nothing after this says anything.
    if (faults.length > 0 && entrance.walks.includes(walk)) break;
  }
} finally {
  await browser.close();
  await server.stop();
}
console.log(
  failed.length === 0 ? `${walks.length} walks, no faults` : `${failed.length} of ${walks.length} walks failed`,
);
process.exit(failed.length === 0 ? 0 : 1);
