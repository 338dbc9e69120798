// The numbers of a version and its previous version, and the changes between the two.

import { loading } from '../data/loading.svelte';
import { baseInUse } from '../layout/base_in_use.svelte';
import { location } from '../navigation/router.svelte';
import type { VersionPair } from '../versions/version_order';
import { changes } from './candidates';
import { health } from './health';

/** `pair` returns `null` while the versions are unknown. */
export function comparisonOf(pair: () => VersionPair | null) {
  $effect(() => baseInUse.use(pair()?.previous ?? ''));
  const numbers = loading((signal) => {
    const [filters, of] = [location.filters, pair()];
    return of ? health(filters, of, signal) : Promise.resolve(undefined);
  });
  const found = loading(async (signal) => {
    const [filters, of] = [location.filters, pair()];
    if (!of?.previous) return undefined;
    // Waits for the numbers, because the changes need many queries, which would delay the cards.
    await numbers.settled;
    signal.throwIfAborted();
    return changes(filters, of, signal);
  });
  return { numbers, found };
}
