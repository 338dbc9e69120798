// The rows of the list of versions: when each version was seen, and its share of the period's installs and sessions. Pure.

import type { TableAnswer } from '../api/query';
import type { Release } from '../versions/releases.svelte';
import { compareVersions } from '../versions/version_order';

export interface VersionRow {
  app: string;
  version: string;
  /** `null` if the server no longer has the version, or does not know the version yet. */
  release: Release | null;
  /** The installs in the period, with the current filters. */
  installs: number;
  sessions: number;
  /** The installs and the sessions of all versions of the app. */
  ofInstalls: number;
  ofSessions: number;
}

/** The versions used in the period, newest first. `used` has the numbers by app and version, `apps` the numbers by app. */
export function versionRows(used: TableAnswer, apps: TableAnswer, releases: Release[]): VersionRow[] {
  const [installs, sessions] = ['installs', 'sessions'].map((name) =>
    used.measures.findIndex((measure) => measure.name === name),
  ) as [number, number];
  const whole = new Map(apps.rows.map((row) => [row.keys[0] ?? '', row.values]));
  return used.rows
    .map(({ keys, values }) => {
      const [app = '', version = ''] = keys;
      return {
        app,
        version,
        release: releases.find((one) => one.app === app && one.version === version) ?? null,
        installs: values[installs] ?? 0,
        sessions: values[sessions] ?? 0,
        ofInstalls: whole.get(app)?.[installs] ?? 0,
        ofSessions: whole.get(app)?.[sessions] ?? 0,
      };
    })
    .toSorted((a, b) => a.app.localeCompare(b.app) || compareVersions(b.version, a.version));
}
