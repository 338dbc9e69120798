// A browser page for walks. Records errors, checks accessibility and takes screenshots.
import { mkdirSync } from 'node:fs';
import { AxeBuilder } from '@axe-core/playwright';
import { followClock } from './browser.mjs';

const shots = new URL('./shots/', import.meta.url).pathname;
mkdirSync(shots, { recursive: true });

/** A long timeout, because a busy machine is slow. Waits end as soon as their condition is met. */
const PATIENCE_MS = Number(process.env.UNJANK_E2E_PATIENCE_MS ?? 60_000);
/** The preview of an alert rule may take 30 seconds. */
const ANSWERED_MS = 120_000;
/** A page that stays quiet for this time sends nothing more by itself. */
const QUIET_MS = 150;
const BUSY = '[aria-busy=true], [role=status][aria-label=Loading]';

/** The console message of a failed request. A walk may expect some of them. */
const FAILED_REQUEST = /Failed to load resource: the server responded with a status of (\d+)/;

export class Reader {
  static async open(browser, url, options = {}) {
    const context = await browser.newContext({ baseURL: url, viewport: { width: 1400, height: 900 }, ...options });
    if (process.env.LD_PRELOAD) await followClock(context);
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    return new Reader(context, page);
  }

  constructor(context, page) {
    this.context = context;
    this.page = page;
    this.faults = [];
    /** Console messages of 401 responses. They are not faults if the page then refreshes its session. */
    this.refused = [];
    this.expected = new Set();
    /** Requests of the page's scripts without a response. */
    this.pending = new Set();
    page.on('request', (request) => {
      if (['fetch', 'xhr'].includes(request.resourceType())) this.pending.add(request);
    });
    for (const end of ['requestfinished', 'requestfailed']) page.on(end, (request) => this.pending.delete(request));
    page.on('console', (message) => {
      if (!['error', 'warning'].includes(message.type())) return;
      const status = FAILED_REQUEST.exec(message.text())?.[1];
      if (status && this.expected.has(Number(status))) return;
      const faults = status === '401' ? this.refused : this.faults;
      faults.push(`console: ${message.text()} (${page.url()})`);
    });
    page.on('response', (response) => {
      if (response.ok() && response.url().endsWith('/api/v1/session/refresh')) this.refused = [];
    });
    page.on('pageerror', (error) => this.faults.push(`script: ${error.stack ?? error.message}`));
    page.on('requestfailed', (request) => {
      const text = request.failure()?.errorText;
      if (text !== 'net::ERR_ABORTED') this.faults.push(`request: ${request.url()} ${text}`);
    });
  }

  /** Expects responses with these statuses, such as 401 for a wrong password. */
  expect(...statuses) {
    statuses.forEach((status) => this.expected.add(status));
  }

  /**
   * Waits until no request is pending and no part of the page is dimmed. Playwright's `networkidle` holds from the first load on, also
   * while a page that replaced the first one still loads.
   */
  async settled() {
    await this.page.waitForLoadState('load', { timeout: ANSWERED_MS });
    const end = Date.now() + ANSWERED_MS;
    for (let quiet = 0; quiet < 2;) {
      const busy = await this.page.evaluate(rendered, BUSY);
      quiet = this.pending.size === 0 && busy === null ? quiet + 1 : 0;
      if (Date.now() > end) throw new Error(`still loading: ${[busy, ...[...this.pending].map((one) => one.url())]}`);
      if (quiet < 2) await this.page.waitForTimeout(QUIET_MS);
    }
  }

  /** Takes a screenshot, and records accessibility faults that axe finds. */
  async look(name) {
    await this.settled();
    await this.page.screenshot({ path: `${shots}${name}.png` });
    // The results of passed rules and of frames from elsewhere would take most of the time.
    const axe = new AxeBuilder({ page: this.page }).setLegacyMode().options({ resultTypes: ['violations'] });
    const { violations } = await axe.analyze();
    for (const one of violations) {
      const where = one.nodes.map((node) => `${node.target.join(' ')}: ${node.failureSummary}`).join('\n    ');
      this.faults.push(`axe at ${name}: ${one.id}: ${one.help}\n    ${where}`);
    }
  }

  /** Records a fault if the page is wider than the screen. */
  async overflow(name) {
    const [content, screen] = await this.page.evaluate(() => [
      document.documentElement.scrollWidth,
      document.documentElement.clientWidth,
    ]);
    if (content > screen) this.faults.push(`${name} is ${content} px wide on a screen of ${screen}`);
  }

  async close() {
    await this.context.close();
    return [...this.faults, ...this.refused];
  }
}

/** Runs in the page. Renders it, so that it sends the requests that its new data needs. Returns the first busy part. */
async function rendered(busy) {
  for (let frame = 0; frame < 2; frame += 1) await new Promise(requestAnimationFrame);
  return document.querySelector(busy)?.outerHTML.slice(0, 200) ?? null;
}

export function check(truth, message) {
  if (!truth) throw new Error(message);
}
