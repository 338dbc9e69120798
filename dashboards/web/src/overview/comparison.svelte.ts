// The numbers of a version and of the previous one, and the changes between the two.

import { loading } from '../data/loading.svelte';
import { baseInUse } from '../layout/base_in_use.svelte';
import { location } from '../navigation/router.svelte';
import type { VersionPair } from '../versions/version_order';
import { changes } from './candidates';
import { health } from './health';

/** `pair`: `null` while it is unknown. */
export function comparisonOf(pair: () => VersionPair | null) {
  $effect(() => baseInUse.use(pair()?.previous ?? ''));
  const numbers = loading((signal) => {
    const [filters, of] = [location.filters, pair()];
    return of ? health(filters, of, signal) : Promise.resolve(undefined);
  });
  const found = loading(async (signal) => {
    const [filters, of] = [location.filters, pair()];
    if (!of?.previous) return undefined;
    // The changes need many queries, which would delay the numbers of the cards.
    await numbers.settled;
    signal.throwIfAborted();
    return changes(filters, of, signal);
  });
  return { numbers, found };
}
