// Somebody in front of the browser: a page that remembers everything that went wrong, looks for faults of accessibility and takes pictures.
import { mkdirSync } from 'node:fs';
import { AxeBuilder } from '@axe-core/playwright';

const shots = new URL('./shots/', import.meta.url).pathname;
mkdirSync(shots, { recursive: true });

/** A busy machine is slow; nothing waits longer than it takes. */
const PATIENCE_MS = Number(process.env.UNJANK_E2E_PATIENCE_MS ?? 20_000);
/** A rule is tried on the past for half a minute. */
const ANSWERED_MS = 60_000;

/** Answers that a walk asks for on purpose show up in the console as failed requests. */
const FAILED_REQUEST = /Failed to load resource: the server responded with a status of (\d+)/;

export class Reader {
  static async open(browser, url, options = {}) {
    const context = await browser.newContext({ baseURL: url, viewport: { width: 1400, height: 900 }, ...options });
    const page = await context.newPage();
    page.setDefaultTimeout(PATIENCE_MS);
    return new Reader(context, page);
  }

  constructor(context, page) {
    this.context = context;
    this.page = page;
    this.faults = [];
    /** Requests answered 401. They are no faults if the page then renews its session. */
    this.refused = [];
    this.expected = new Set();
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

  /** The status of answers that are part of the walk, such as 401 for a wrong password. */
  expect(...statuses) {
    statuses.forEach((status) => this.expected.add(status));
  }

  /** Nothing is asked for any more. What is asked anew is dimmed until it is there. */
  async settled() {
    const options = { timeout: ANSWERED_MS };
    await this.page.waitForLoadState('networkidle', options);
    const busy = '[aria-busy=true], [role=status][aria-label=Loading]';
    await this.page.waitForFunction((busy) => !document.querySelector(busy), busy, options);
  }

  /** A picture, and what axe says. */
  async look(name) {
    await this.settled();
    await this.page.screenshot({ path: `${shots}${name}.png` });
    const { violations } = await new AxeBuilder({ page: this.page }).analyze();
    for (const one of violations.filter(({ impact }) => ['serious', 'critical'].includes(impact))) {
      const where = one.nodes.map((node) => `${node.target.join(' ')}: ${node.failureSummary}`).join('\n    ');
      this.faults.push(`axe at ${name}: ${one.id}: ${one.help}\n    ${where}`);
    }
  }

  /** Whether the page is wider than the screen. */
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

export function check(truth, message) {
  if (!truth) throw new Error(message);
}
