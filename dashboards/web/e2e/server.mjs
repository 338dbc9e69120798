// A real server for the walks: the binary, on a folder and ports of its own, with one admin and one project.
import { execFile, spawn } from 'node:child_process';
import { createWriteStream, existsSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';

export const ADMIN = { email: 'ann@example.com', name: 'Ann Admin', password: 'correct horse battery' };
export const PROJECT = 'shop';
const START_MS = 180_000;

const root = new URL('../../../', import.meta.url).pathname;
const target = process.env.CARGO_TARGET_DIR ?? join(root, 'target');
const binary = process.env.UNJANK_BIN ?? join(target, 'debug', 'unjank');

export async function startServer() {
  if (!existsSync(binary)) throw new Error(`${binary} is missing: cargo build -p unjank-server --bin unjank`);
  const folder = mkdtempSync(join(tmpdir(), 'unjank-e2e-'));
  const [port, admin] = await Promise.all([freePort(), freePort()]);
  const url = `http://127.0.0.1:${port}`;
  const env = {
    ...process.env,
    UNJANK_LISTEN: `127.0.0.1:${port}`,
    UNJANK_ADMIN_LISTEN: `127.0.0.1:${admin}`,
    UNJANK_DATA_DIR: join(folder, 'data'),
  };
  const log = join(folder, 'server.log');
  const child = spawn(binary, ['serve'], { env, stdio: ['ignore', 'ignore', 'pipe'] });
  child.stderr.pipe(createWriteStream(log));
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
    const add = ['user', 'add', '--email', ADMIN.email, '--name', ADMIN.name, '--admin'];
    const invitation = (await promisify(execFile)(binary, add, { env })).stdout.trim();
    return { url, stop, log, invitation };
  } catch (error) {
    await stop();
    throw error;
  }
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

function freePort() {
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
