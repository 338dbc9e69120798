// In which direction a metric is worse. The API does not know it, but an alert rule says it. Pure.

import type { Incident } from './around';

/** Whether lower or higher values of a metric are better, as its open incidents say. */
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
