// How often pages with a period refresh. The browser stores the choice.

import { refresh } from '../data/refresh.svelte';

const KEY = 'unjank-refresh';
export const EVERY = [
  { id: 'off', label: 'Off', ms: 0 },
  { id: '30s', label: '30 s', ms: 30_000 },
  { id: '1m', label: '1 min', ms: 60_000 },
  { id: '5m', label: '5 min', ms: 300_000 },
] as const;
const LOOK_EVERY_MS = 1000;

let chosen = $state(EVERY.find(({ id }) => id === localStorage.getItem(KEY)) ?? EVERY[0]);

export const autoRefresh = {
  get chosen() {
    return chosen;
  },
  choose(wanted: string) {
    chosen = EVERY.find(({ id }) => id === wanted) ?? EVERY[0];
    localStorage.setItem(KEY, chosen.id);
  },
};

/** Refreshes while the component exists, `isWanted` returns true, and the page is visible. A page that becomes visible refreshes at once if a refresh is due. */
export function refreshAutomatically(isWanted: () => boolean) {
  $effect(() => {
    const { ms } = chosen;
    if (ms === 0 || !isWanted()) return;
    const look = () => {
      if (!document.hidden && Date.now() - refresh.at.getTime() >= ms) void refresh.run();
    };
    const timer = setInterval(look, LOOK_EVERY_MS);
    document.addEventListener('visibilitychange', look);
    return () => {
      clearInterval(timer);
      document.removeEventListener('visibilitychange', look);
    };
  });
}
