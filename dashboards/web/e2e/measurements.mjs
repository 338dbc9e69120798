// Sends measurements of two versions of a shop, like devices. 4.10.0 is slower than 4.9.0 and has a new jank.
import { randomBytes, randomUUID } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';

export const APP = 'com.example.shop';
export const LATEST = '4.10.0';
export const PREVIOUS = '4.9.0';
const INSTALLS = 52;
const LOOP = [
  { class: 'android.os.Handler', function: 'dispatchMessage', file: 'Handler.java', line: 106 },
  { class: 'android.os.Looper', function: 'loop', file: 'Looper.java', line: 288 },
];
const stack = (inner, name, line) => [
  { class: 'android.database.sqlite.SQLiteStatement', function: inner },
  { class: `${APP}.cart.CartDao`, function: name, file: 'CartDao.kt', line },
  ...LOOP,
];
const OLD_STACK = stack('executeInsert', 'insert', 41);
const NEW_STACK = stack('simpleQueryForLong', 'total', 73);

/** Sends all batches, and waits until queries return them. `ask` sends a query from a logged-in browser. */
export async function sendMeasurements(url, key, ask) {
  const headers = { authorization: `Bearer ${key}`, 'content-type': 'application/json' };
  let sent = 0;
  for (const version of [PREVIOUS, LATEST]) {
    for (let install = 0; install < INSTALLS; install += 1) {
      const body = JSON.stringify(batch(version, install));
      const answer = await ingest(url, headers, body);
      if (!answer.ok) throw new Error(`ingest answers ${answer.status}: ${await answer.text()}`);
      const { rejected } = await answer.json();
      if (rejected.length > 0) throw new Error(`refused: ${JSON.stringify(rejected[0])}`);
      sent += 1;
    }
  }
  for (let tries = 0; tries < 120; tries += 1) {
    const { rows } = await ask('query/janks?measure=count&by=kind');
    const { rows: use } = await ask('query/usage?measure=count');
    if (rows.length > 0 && use[0]?.values[0] >= sent) return;
    await sleep(500);
  }
  throw new Error('queries do not return the sent events');
}

/** The server accepts a new key within a second. */
async function ingest(url, headers, body) {
  for (let tries = 0; ; tries += 1) {
    const answer = await fetch(`${url}/v1/ingest`, { method: 'POST', headers, body });
    if (answer.status !== 401 || tries === 50) return answer;
    await sleep(100);
  }
}

/** An hour or two ago, but on the day of its batch: versions are compared on the days on which they send. */
function startOf(install, now) {
  const midnight = now - (now % 86_400_000);
  return new Date(Math.max(now - 3_600_000 - install * 60_000, Math.min(midnight + install * 1_000, now)));
}

function batch(version, install) {
  const slower = version === LATEST ? 2 : 1;
  const start = startOf(install, Date.now()).toISOString();
  const at = { start, network: install % 2 ? 'wifi' : 'cellular_4g', page: 'CartActivity', uptime_ms: 60_000 };
  return {
    batch_id: randomUUID(),
    session_id: randomUUID(),
    resource: {
      app_id: APP,
      app_version: version,
      install_id: randomUUID(),
      os_name: 'android',
      os_version: install % 3 ? '14' : '15',
      device_model: install % 2 ? 'Pixel 8' : 'SM-A546B',
      device_class: ['low', 'mid', 'high'][install % 3],
      refresh_hz: install % 2 ? 120 : 60,
    },
    spans: ['checkout', 'cart.total'].map((name) => ({
      trace_id: randomBytes(16).toString('hex'),
      span_id: randomBytes(8).toString('hex'),
      name,
      start,
      duration_us: slower * (40_000 + install * 1000),
      page: at.page,
    })),
    frame_windows: ['CartActivity', 'FeedActivity'].map((page) => ({
      ...at,
      page,
      duration_ms: 600_000,
      frames_drawn: 30_000,
      frames_dropped: 400,
      slow_frames: 300 * slower,
      frozen_frames: slower,
      longest_drop: 12 * slower,
      jank_ms: 900 * slower,
      delay_ms: 700 * slower,
      frame_time_hist: { 0: 9000, 5: 9000, 8: 8000, 16: 3000, 32: 900 * slower, 64: 100, 700: slower },
    })),
    janks: [
      jank(at, OLD_STACK, 400 + install * 10),
      ...(version === LATEST ? [jank(at, NEW_STACK, 2500 + install * 150, install % 5 ? 'finished' : 'killed')] : []),
    ],
    page_loads: ['CartActivity', 'FeedActivity'].map((page, place) => ({
      ...at,
      page,
      launch: install % 2 ? 'warm' : 'cold',
      outcome: install % 8 ? 'completed' : 'aborted',
      t1_ms: 60 + install,
      t2_ms: (200 + 10 * install) * slower,
      t3_ms: 50 + install,
      total_ms: (300 + 10 * install + 50 * place) * slower,
      requests: [{ path: '/cart', offset_ms: 20, duration_ms: (180 + 9 * install) * slower, status: 200 }],
    })),
    app_starts: [
      {
        kind: 'cold',
        start,
        duration_ms: 700 + install * 20,
        phases: [
          { name: 'di', duration_ms: slower * (200 + install) },
          { name: 'first_frame', duration_ms: 250 },
        ],
      },
    ],
  };
}

function jank(at, frames, duration_ms, ended = 'finished') {
  return {
    ...at,
    duration_ms,
    ended,
    kind: duration_ms > 5000 ? 'anr' : 'jank',
    thread: 'main',
    foreground: true,
    strategy: { threshold_ms: 2000, count: 1 },
    stack: frames,
    samples: [{ offset_ms: 120, stack: frames }],
    run_log: [{ time: at.start, message: 'CartActivity is shown' }],
  };
}
