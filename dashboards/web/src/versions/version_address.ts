// The address of the page of a version.

import { withValues } from '../navigation/filters';
import { addressOf, only } from '../navigation/links';
import { location } from '../navigation/router.svelte';

/** Keeps all filters except those by version, because the page is about one version and compares it with the previous version. */
export function versionAddress({ app, version }: { app: string; version: string }): string {
  const filters = { ...withValues(location.filters, 'app_version', []), baseVersion: '' };
  return addressOf(`/versions/${encodeURIComponent(version)}`, app ? only(filters, 'app_id', app) : filters);
}
