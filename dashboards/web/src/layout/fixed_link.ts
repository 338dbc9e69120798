// Copies a link to the current screen. A period such as "last 7 days" becomes fixed times.

import { say } from '../components/toast.svelte';
import { refresh } from '../data/refresh.svelte';
import { withFixedTime } from '../evidence/fixed_time';
import { addressOf } from '../navigation/links';
import { location, navigate } from '../navigation/router.svelte';
import { routeOf } from '../navigation/routes';

export async function copyFixedLink() {
  const fixed = withFixedTime(location.filters, refresh.at);
  const hasPeriod = routeOf(location.path)?.filters;
  const address = addressOf(location.path, hasPeriod ? fixed : location.filters, location.query);
  try {
    await navigator.clipboard.writeText(window.location.origin + address);
    say(hasPeriod ? 'Link copied. Its period is fixed.' : 'Link copied.');
  } catch {
    // Without access to the clipboard, as over plain HTTP, the user copies the link from the address bar.
    navigate(address);
    say('The browser blocked copying. Copy the link from the address bar.', 'bad');
  }
}
