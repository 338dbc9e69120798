// Measures how much a page moves while it loads: the sum of layout shifts without user input.
import { setTimeout as sleep } from 'node:timers/promises';

export const MOST_SHIFT = 0.05;
const DELAYS_MS = [80, 320, 200];

/** Observes all pages that open from now on, and delays their answers, as a busy server does: each part of a page comes alone. */
export async function watchShifts(page) {
  let asked = 0;
  await page.route('**/api/**', async (route) => {
    asked += 1;
    await sleep(DELAYS_MS[asked % DELAYS_MS.length]);
    // The page may be left by now.
    await route.continue().catch(() => undefined);
  });
  await page.addInitScript(() => {
    globalThis.shifts = [];
    new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) {
        if (entry.hadRecentInput) continue;
        const moved = entry.sources.map(({ node }) => node?.className || node?.nodeName).join(', ');
        globalThis.shifts.push({ value: entry.value, moved });
      }
    }).observe({ type: 'layout-shift', buffered: true });
  });
}

/** The fault of the open page, in a list. Empty if the page moved at most by `MOST_SHIFT`. */
export async function shiftFault(page, name) {
  const shifts = await page.evaluate(() => globalThis.shifts);
  const sum = shifts.reduce((all, { value }) => all + value, 0);
  if (sum <= MOST_SHIFT) return [];
  const worst = shifts.toSorted((a, b) => b.value - a.value)[0];
  return [`${name} moves by ${sum.toFixed(3)} while it loads, mostly ${worst.moved}`];
}
