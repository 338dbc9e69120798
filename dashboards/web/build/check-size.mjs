// Runs after a build. Writes a compressed copy of each file, which the server sends instead. Fails if a page loads too much JavaScript.
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import zopfli from '@gfx/zopfli';

/** The maximum size of the compressed scripts that one page loads, including all its parts. */
const LIMIT_KB = 170;
const folder = new URL('../dist/', import.meta.url).pathname;

/** Compressed bytes by group of `vite.config.ts`. Scripts outside the groups count as base. */
const groups = {
  base: 0,
  administration: 0,
  measurements: 0,
  'flame-graph': 0,
  sessions: 0,
  'starts-and-hangs': 0,
  releases: 0,
  alerts: 0,
  traces: 0,
  palette: 0,
};
let styles = 0;
for (const name of readdirSync(folder, { recursive: true })) {
  const path = join(folder, name);
  if (statSync(path).isDirectory() || !/\.(js|css|html|svg|json)$/.test(name)) continue;
  const compressed = await zopfli.gzipAsync(readFileSync(path), { numiterations: 30 });
  writeFileSync(`${path}.gz`, compressed);
  if (name.endsWith('.css')) styles += compressed.length;
  if (!name.endsWith('.js')) continue;
  const group = Object.keys(groups).find((one) => name.includes(`/${one}`)) ?? 'base';
  groups[group] += compressed.length;
}
const kb = (bytes) => (bytes / 1000).toFixed(1);
const parts = Object.entries(groups).map(([name, bytes]) => `${name} ${kb(bytes)}`);
const separate = ['flame-graph', 'sessions', 'starts-and-hangs', 'releases', 'alerts', 'traces'].map(
  (name) => groups[name],
);
const part = Math.max(groups.administration, groups.measurements + Math.max(...separate));
const largest = groups.base + part + groups.palette;
console.log(
  `JavaScript, compressed: at most ${kb(largest)} kB a page (limit: ${LIMIT_KB} kB): ${parts.join(', ')}. Styles: ${kb(styles)} kB`,
);
if (largest > LIMIT_KB * 1000) {
  console.error(`too much JavaScript: a page loads ${kb(largest)} kB, the limit is ${LIMIT_KB} kB`);
  process.exit(1);
}
