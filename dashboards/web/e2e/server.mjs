// Starts real servers for the walks, each with its own folder and ports: an empty one, and one with the data of the demo.
import { execFile, spawn } from 'node:child_process';
import { createWriteStream, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

export const ADMIN = { email: 'ann@example.com', name: 'Ann Admin', password: 'correct horse battery' };
export const PROJECT = 'shop';
const START_MS = 600_000;
const DAY_MS = 86_400_000;

const root = new URL('../../../', import.meta.url).pathname;
const target = process.env.CARGO_TARGET_DIR ?? join(root, 'target');
const binary = process.env.UNJANK_BIN ?? join(target, 'debug', 'unjank');

/** Starts a server without users. `setUp` is the link that the server printed. `invite` creates an admin on the command line instead.
 * `sql` queries its raw tables. */
export async function startServer(settings = [], port = undefined) {
  const { stop, run, sql, url, said } = await start(['serve', ...settings], port);
  const setUp = /\S+\/setup#code=\S+/.exec(said())?.[0];
  if (!setUp) {
    await stop();
    throw new Error(`the server printed no link for the set-up: ${said()}`);
  }
  const add = ['user', 'add', '--email', ADMIN.email, '--name', ADMIN.name, '--admin'];
  const invite = async () => (await run(add)).trim();
  return { url, setUp, invite, sql, stop };
}

/** Starts the demo, whose month of data ends at the last midnight. */
export async function startDemo(installs = 120) {
  const midnight = new Date(Math.floor(Date.now() / DAY_MS) * DAY_MS);
  const { stop, sql, url, said } = await start([
    ...['demo', '--installs', String(installs), '--seed', '7'],
    ...['--until', midnight.toISOString()],
  ]);
  const [, email, password] = /log in as (\S+) with (\S+)/.exec(said()) ?? [];
  return { url, email, password, sql, stop };
}

/** Starts the binary with a new folder and free ports, and waits until it is ready. */
async function start(command, wanted = undefined) {
  if (!existsSync(binary)) throw new Error(`${binary} is missing: cargo build -p unjank-server --bin unjank`);
  const folder = mkdtempSync(join(tmpdir(), 'unjank-e2e-'));
  const [port, admin] = await Promise.all([wanted ?? freePort(), freePort()]);
  const env = {
    ...process.env,
    UNJANK_LISTEN: `127.0.0.1:${port}`,
    UNJANK_ADMIN_LISTEN: `127.0.0.1:${admin}`,
    UNJANK_DATA_DIR: join(folder, 'data'),
    // The default of a minute would slow down the walks.
    UNJANK_ALERTS_INTERVAL_MS: '2000',
    // Disk quotas are checked at this interval, ten minutes by default.
    UNJANK_RETENTION_INTERVAL_MS: '1000',
    // The browser keeps the processors busy: the engine would wait for it.
    UNJANK_ENGINE_NICE: '0',
  };
  const log = join(folder, 'server.log');
  const child = spawn(binary, command, { env, stdio: ['ignore', 'pipe', 'pipe'] });
  child.stderr.pipe(createWriteStream(log));
  let text = '';
  child.stdout.on('data', (chunk) => (text += chunk));
  const stop = async () => {
    if (child.exitCode === null) {
      const ended = new Promise((resolve) => child.once('exit', resolve));
      child.kill('SIGTERM');
      await Promise.race([ended, sleep(20_000).then(() => child.kill('SIGKILL'))]);
    }
    rmSync(folder, { recursive: true, force: true });
  };
  try {
    await untilReady(`http://127.0.0.1:${admin}/readyz`, child, log);
  } catch (error) {
    await stop();
    throw error;
  }
  const run = async (args) => (await promisify(execFile)(binary, args, { env, maxBuffer: 64 << 20 })).stdout;
  const sql = async (query) =>
    (await run(['sql', query, '--format', 'JSONEachRow']))
      .split('\n')
      .filter(Boolean)
      .map((line) => JSON.parse(line));
  return { url: `http://127.0.0.1:${port}`, said: () => text, run, sql, stop };
}

async function untilReady(url, child, log) {
  const end = Date.now() + START_MS;
  while (Date.now() < end) {
    if (child.exitCode !== null) throw new Error(`unjank serve ended with ${child.exitCode}, see ${log}`);
    const ready = await fetch(url).then(
      (answer) => answer.ok,
      () => false,
    );
    if (ready) return;
    await sleep(200);
  }
  throw new Error(`unjank serve was not ready within ${START_MS / 1000} s, see ${log}`);
}

export function freePort() {
  return new Promise((resolve, reject) => {
    const probe = createServer();
    probe.once('error', reject);
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address();
      probe.close(() => resolve(port));
    });
  });
}

function sleep(ms) {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
