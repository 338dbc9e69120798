// After a build: writes a compressed copy beside each file, which the server sends instead, and keeps what browsers load small.
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import zopfli from '@gfx/zopfli';

/** Without the viewer of flame graphs, which few open. */
const LIMIT_KB = 180;
const folder = new URL('../dist/', import.meta.url).pathname;

let scripts = 0;
let viewer = 0;
let styles = 0;
for (const name of readdirSync(folder, { recursive: true })) {
  const path = join(folder, name);
  if (statSync(path).isDirectory() || !/\.(js|css|html|svg|json)$/.test(name)) continue;
  const compressed = await zopfli.gzipAsync(readFileSync(path), { numiterations: 30 });
  writeFileSync(`${path}.gz`, compressed);
  if (/flame-graph.*\.js$/.test(name)) viewer += compressed.length;
  else if (name.endsWith('.js')) scripts += compressed.length;
  if (name.endsWith('.css')) styles += compressed.length;
}
const kb = (bytes) => (bytes / 1000).toFixed(1);
console.log(
  `JavaScript ${kb(scripts)} kB (limit: ${LIMIT_KB} kB) and ${kb(viewer)} kB of the flame graph viewer, styles ${kb(styles)} kB, compressed`,
);
if (scripts > LIMIT_KB * 1000) {
  console.error(`too much JavaScript: ${kb(scripts)} kB, the limit is ${LIMIT_KB} kB`);
  process.exit(1);
}
