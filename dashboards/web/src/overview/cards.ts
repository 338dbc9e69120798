// The cards at the top of the overview. Pure.

import type { Rate } from '../versions/rate_test';
import type { Health, HealthSignal } from './health';

export interface CardDefinition {
  label: string;
  unit: string;
  better: 'lower' | 'higher' | 'none';
  value: (health: Health, version: string) => number | null;
  /** The number of samples. Below `MIN_SAMPLES`, the card claims no change. */
  samples: (health: Health, version: string) => number;
  /** The number of counted cases, such as ANRs. With fewer than `MIN_CASES` in both versions, the card claims no change. */
  cases?: (health: Health, version: string) => number;
  /** The numbers with the installs that are affected. The card shows their share of all installs of the version. */
  affected?: HealthSignal;
  /** The measure that the server tests, or the rate that the browser tests. Counts have no test. */
  tested?: [HealthSignal, string] | ((health: Health, version: string) => Rate);
  page: string;
  parameters?: Record<string, string>;
  hint: string;
}

export const MIN_SAMPLES = 30;
export const MIN_CASES = 30;
const HOUR_MS = 3_600_000;

const ratio = (above: number | null, below: number | null) => (below ? (above ?? 0) / below : null);
const hours = (health: Health, version: string) => (health.get('frames', 'duration_ms', version) ?? 0) / HOUR_MS;

export const CARDS: CardDefinition[] = [
  {
    label: 'Sessions',
    unit: 'count',
    better: 'none',
    value: (health, version) => health.get('usage', 'sessions', version),
    samples: () => Infinity,
    page: '/ingest',
    hint: 'that sent data',
  },
  {
    label: 'Installs',
    unit: 'count',
    better: 'none',
    value: (health, version) => health.get('usage', 'installs', version),
    samples: () => Infinity,
    page: '/ingest',
    hint: 'that sent data',
  },
  {
    label: 'Janks per hour of use',
    unit: 'per_hour',
    better: 'lower',
    value: (health, version) => ratio(health.get('janks', 'count', version), hours(health, version)),
    samples: (health, version) => health.get('janks', 'count', version) ?? 0,
    affected: 'janks',
    tested: (health, version) => ({
      count: health.get('janks', 'count', version) ?? 0,
      installs: health.get('janks', 'installs', version) ?? 0,
      exposure: hours(health, version),
    }),
    page: '/jank',
    hint: 'hours in which frames were measured',
  },
  {
    label: 'Sessions with an ANR',
    unit: 'share',
    better: 'lower',
    value: (health, version) =>
      ratio(health.get('anrs', 'sessions', version), health.get('usage', 'sessions', version)),
    samples: (health, version) => health.get('usage', 'sessions', version) ?? 0,
    cases: (health, version) => health.get('anrs', 'sessions', version) ?? 0,
    affected: 'anrs',
    tested: (health, version) => ({
      count: health.get('anrs', 'sessions', version) ?? 0,
      installs: health.get('anrs', 'installs', version) ?? 0,
      exposure: health.get('usage', 'sessions', version) ?? 0,
    }),
    page: '/hangs',
    parameters: { hangs: 'anr' },
    hint: 'stalls of 5 s or longer',
  },
  {
    label: 'Slow frames',
    unit: 'share',
    better: 'lower',
    value: (health, version) => health.get('frames', 'slow_share', version),
    samples: (health, version) => health.get('frames', 'frames_drawn', version) ?? 0,
    tested: ['frames', 'slow_share'],
    page: '/frames',
    hint: 'longer than the screen allows',
  },
  {
    label: 'Frozen frames',
    unit: 'share',
    better: 'lower',
    value: (health, version) => health.get('frames', 'frozen_share', version),
    samples: (health, version) => health.get('frames', 'frames_drawn', version) ?? 0,
    cases: (health, version) =>
      (health.get('frames', 'frozen_share', version) ?? 0) * (health.get('frames', 'frames_drawn', version) ?? 0),
    tested: ['frames', 'frozen_share'],
    page: '/frames',
    parameters: { measure: 'frozen_share' },
    hint: 'over 700 ms',
  },
  {
    label: 'Page load, p75',
    unit: 'ms',
    better: 'lower',
    value: (health, version) => health.get('loads', 'total_p75_ms', version),
    samples: (health, version) => health.get('loads', 'count', version) ?? 0,
    tested: ['loads', 'total_p75_ms'],
    page: '/page-loads',
    hint: 'from opening to drawing',
  },
  {
    label: 'Cold start, p50',
    unit: 'ms',
    better: 'lower',
    value: (health, version) => health.get('starts', 'p50_ms', version),
    samples: (health, version) => health.get('starts', 'samples', version) ?? 0,
    tested: ['starts', 'p50_ms'],
    page: '/app-starts',
    hint: 'half of the starts are faster',
  },
  {
    label: 'Cold start, p75',
    unit: 'ms',
    better: 'lower',
    value: (health, version) => health.get('starts', 'p75_ms', version),
    samples: (health, version) => health.get('starts', 'samples', version) ?? 0,
    tested: ['starts', 'p75_ms'],
    page: '/app-starts',
    hint: 'three quarters of the starts are faster',
  },
  {
    label: 'Spans with an error',
    unit: 'share',
    better: 'lower',
    value: (health, version) => health.get('spans', 'error_share', version),
    samples: (health, version) => health.get('spans', 'count', version) ?? 0,
    cases: (health, version) =>
      (health.get('spans', 'error_share', version) ?? 0) * (health.get('spans', 'count', version) ?? 0),
    tested: ['spans', 'error_share'],
    page: '/spans',
    hint: 'of all spans',
  },
];
