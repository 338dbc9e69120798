// Whether higher or lower values of a metric are better. The API does not return the better direction, but alert rules contain it. Pure.

import type { Incident } from './incident';

/** The better direction of a metric, according to its open incidents. */
export function betterOf(incidents: Incident[], metric: string): 'lower' | 'higher' | undefined {
  for (const { evidence } of incidents) {
    const { metric: watched, group, condition, numbers } = evidence;
    const names = group.name ? [group.name] : (watched.filters?.name ?? []);
    if (watched.signal !== 'metrics' || !names.includes(metric)) continue;
    if (condition.kind === 'threshold') return typeof condition.below === 'number' ? 'higher' : 'lower';
    if (condition.kind === 'regression') return (numbers.bound ?? 0) < 0 ? 'higher' : 'lower';
  }
  return undefined;
}
