// The versions in use, each with its number of sessions.

import { queryTable, type Question } from '../api/query';
import { applicable } from '../api/applicable';
import { withValues, type Filters } from '../navigation/filters';
import { releases } from './releases.svelte';
import type { VersionUse } from './version_order';

export async function knownVersions(filters: Filters, signal: AbortSignal): Promise<VersionUse[]> {
  const everyVersion = withValues(applicable({ ...filters, baseVersion: '' }, 'usage'), 'app_version', []);
  const question: Question = {
    signal: 'usage',
    by: ['app_id', 'app_version'],
    measures: ['sessions'],
    limit: 1000,
  };
  // Waits for the releases, because the order of versions may depend on when each version was first seen.
  const [answer] = await Promise.all([queryTable(everyVersion, question, signal), releases.ask(filters.project)]);
  return answer.rows.map(({ keys, values }) => ({
    app: keys[0] ?? '',
    version: keys[1] ?? '',
    sessions: values[0] ?? 0,
  }));
}
