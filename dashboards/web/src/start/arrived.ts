// Turns answers of the API into the rows and texts of the page Get started. Pure.

import type { TableAnswer } from '../api/query';
import { valueOf } from '../api/query';
import type { Loss } from '../ingest/losses';

/** Batches of one app version on one device model. */
export interface Sender {
  app: string;
  version: string;
  device: string;
  batches: number;
  events: number;
  rejected: number;
  /** Whether a clock was wrong by more than 30 s. */
  isSkewed: boolean;
}

export const SENDER = {
  by: ['app_id', 'app_version', 'device_model'],
  measures: ['count', 'accepted', 'rejected', 'skewed_share'],
};

export function senders(answer: TableAnswer): Sender[] {
  return answer.rows.map((row) => {
    const [app = '', version = '', device = ''] = row.keys;
    const value = (measure: string) => valueOf(answer, row, measure) ?? 0;
    return {
      app,
      version,
      device,
      batches: value('count'),
      events: value('accepted'),
      rejected: value('rejected'),
      isSkewed: value('skewed_share') > 0,
    };
  });
}

interface DataPage {
  path: string;
  title: string;
  parameters?: Record<string, string>;
}

/** The pages that show a signal. */
const PAGES: Record<string, DataPage[]> = {
  spans: [
    { path: '/spans', title: 'Spans' },
    { path: '/traces', title: 'Traces' },
  ],
  janks: [{ path: '/jank', title: 'Jank' }],
  frame_windows: [{ path: '/frames', title: 'Frames' }],
  page_loads: [{ path: '/page-loads', title: 'Page loads' }],
  traffic: [{ path: '/traffic', title: 'Traffic' }],
  metrics: [{ path: '/resources', title: 'Metrics' }],
  app_starts: [{ path: '/app-starts', title: 'App starts' }],
  recompositions: [{ path: '/spans', title: 'Recompositions', parameters: { tab: 'recompositions' } }],
};

/** The pages that have data now. */
export function pagesWithData(found: Loss[]): DataPage[] {
  const stored = new Set(found.filter((one) => one.outcome === 'stored' && one.count > 0).map((one) => one.signal));
  const own = Object.entries(PAGES).flatMap(([signal, pages]) => (stored.has(signal) ? pages : []));
  if (stored.size === 0) return [];
  return [{ path: '/', title: 'Overview' }, ...own, { path: '/ingest', title: 'Ingest health' }];
}

/** The outcomes of events that were not stored. */
export function complaints(found: Loss[]): Loss[] {
  return found.filter((one) => ['rejected', 'dead_letter', 'duplicate'].includes(one.outcome) && one.count > 0);
}

export interface RefusedKey {
  code: string;
  prefix: string;
  requests: number;
  /** The name of the key, if it is a revoked or expired key of the project. */
  own?: string;
}

/** Explains why requests were refused because of their key, and what to do. */
export function refusalText({ code, prefix, requests, own }: RefusedKey): string {
  const count = requests === 1 ? 'A request' : `${requests} requests`;
  const were = requests === 1 ? 'was' : 'were';
  if (own) return `${count} with the key “${own}” ${were} refused: the key is revoked or expired. Use an active key.`;
  if (code === 'key_missing')
    return `${count} without a key ${were} refused. Send the header “Authorization: Bearer”, followed by the ingest key.`;
  if (code === 'device_token_required')
    return `${count} with an ingest key ${were} refused: a project on this server requires device tokens. See Projects and Device keys.`;
  if (code === 'token_expired' || code === 'token_invalid')
    return `${count} with a device token ${were} refused: the token is ${code === 'token_expired' ? 'expired' : 'not signed with an active device key'}. See Device keys.`;
  const begins = prefix ? ` that begins with “${prefix}”` : '';
  if (prefix.startsWith('ujt_'))
    return `${count} with an API token (“${prefix}”) ${were} refused. Devices need an ingest key: it begins with “ujk_”.`;
  return `${count} with an unknown key${begins} ${were} refused. Compare the key with the list under Ingest keys.`;
}
