// Where a page compares two versions, some charts show both beside each other. Pure.

import type { Filters } from '../navigation/filters';

/** The versions that are looked at and their base, as a question wants them; nothing when all versions are shown anyway. */
export function bothVersions({ chosen, baseVersion }: Filters): { app_version: string[] } | undefined {
  if (!chosen.app_version || !baseVersion) return undefined;
  return { app_version: [...new Set([...chosen.app_version, baseVersion])] };
}
