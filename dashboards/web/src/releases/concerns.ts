// Which incidents concern a version. Pure.

import type { Incident } from '../alerts/incident';

/** Whether the evidence names the version: as the judged version, in the group, or in a filter of the rule. */
export function concerns({ evidence, group }: Incident, { app, version }: { app: string; version: string }): boolean {
  const filters = evidence.metric.filters ?? {};
  const named = (dimension: string) =>
    [group[dimension], ...(filters[dimension] ?? [])].filter((one) => one !== undefined);
  const apps = named('app_id');
  const versions = [evidence.sides.version, ...named('app_version')];
  return versions.includes(version) && (apps.length === 0 || apps.includes(app));
}
