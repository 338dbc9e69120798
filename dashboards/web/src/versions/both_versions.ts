// The versions of charts that show both sides of a comparison. Pure.

import type { Filters } from '../navigation/filters';

/** The chosen versions and their base, as a filter. `undefined` without a comparison or with all versions. */
export function bothVersions({ chosen, baseVersion }: Filters): { app_version: string[] } | undefined {
  if (!chosen.app_version || !baseVersion) return undefined;
  return { app_version: [...new Set([...chosen.app_version, baseVersion])] };
}
