// Runs after a build. Writes a compressed copy of each file, which the server sends instead. Fails if a page loads too much JavaScript.
import { readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { basename, join } from 'node:path';
import zopfli from '@gfx/zopfli';

/** The maximum size of the compressed scripts that one page loads, including all its parts. */
const LIMIT_KB = 170;
const folder = new URL('../dist/', import.meta.url).pathname;

/** Compressed bytes of each script, and the scripts that it needs at once. Others load when they are shown. */
const scripts = new Map();
const at_once = /(?:from|import)\s*["']\.\/([^"']+\.js)["']/g;
let styles = 0;
for (const name of readdirSync(folder, { recursive: true })) {
  const path = join(folder, name);
  if (statSync(path).isDirectory() || !/\.(js|css|html|svg|json)$/.test(name)) continue;
  const content = readFileSync(path);
  const compressed = await zopfli.gzipAsync(content, { numiterations: 30 });
  writeFileSync(`${path}.gz`, compressed);
  if (name.endsWith('.css')) styles += compressed.length;
  if (!name.endsWith('.js')) continue;
  const needs = [...content.toString().matchAll(at_once)].map((match) => match[1]);
  scripts.set(basename(name), { bytes: compressed.length, needs });
}

/** Adds a script and those that it needs. */
function load(name, loaded) {
  if (loaded.has(name)) return loaded;
  loaded.add(name);
  for (const other of scripts.get(name).needs) load(other, loaded);
  return loaded;
}

const bytesOf = (names) => [...names].reduce((sum, name) => sum + scripts.get(name).bytes, 0);
/** Every page loads these, or may. */
const first = [...scripts.keys()].filter((name) => /^(index|base|palette)\b/.test(name));
const pages = [...scripts.keys()].map((name) =>
  bytesOf([...first, name].reduce((all, one) => load(one, all), new Set())),
);
const largest = Math.max(...pages);
const kb = (bytes) => (bytes / 1000).toFixed(1);
const parts = [...scripts].map(([name, { bytes }]) => `${name.replace(/-[\w-]{8}\.js$/, '')} ${kb(bytes)}`);
console.log(
  `JavaScript, compressed: at most ${kb(largest)} kB a page (limit: ${LIMIT_KB} kB): ${parts.join(', ')}. Styles: ${kb(styles)} kB`,
);
if (largest > LIMIT_KB * 1000) {
  console.error(`too much JavaScript: a page loads ${kb(largest)} kB, the limit is ${LIMIT_KB} kB`);
  process.exit(1);
}
