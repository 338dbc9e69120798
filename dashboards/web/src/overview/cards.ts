// What stands at the top of the overview. Pure.

import type { Health } from './health';

export interface CardDefinition {
  label: string;
  unit: string;
  better: 'lower' | 'higher' | 'none';
  value: (health: Health, version: string) => number | null;
  /** On how many samples it stands; below `MIN_SAMPLES` no change is claimed. */
  samples: (health: Health, version: string) => number;
  /** How many of what is counted; when there are fewer than `MIN_CASES` in either version, no change is claimed. */
  cases?: (health: Health, version: string) => number;
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
    hint: 'that sent something',
  },
  {
    label: 'Installs',
    unit: 'count',
    better: 'none',
    value: (health, version) => health.get('usage', 'installs', version),
    samples: () => Infinity,
    page: '/ingest',
    hint: 'that sent something',
  },
  {
    label: 'Janks per hour of use',
    unit: 'per_hour',
    better: 'lower',
    value: (health, version) => ratio(health.get('janks', 'count', version), hours(health, version)),
    samples: (health, version) => health.get('janks', 'count', version) ?? 0,
    page: '/jank',
    hint: 'hours in which frames were watched',
  },
  {
    label: 'Sessions with an ANR',
    unit: 'share',
    better: 'lower',
    value: (health, version) =>
      ratio(health.get('anrs', 'sessions', version), health.get('usage', 'sessions', version)),
    samples: (health, version) => health.get('usage', 'sessions', version) ?? 0,
    cases: (health, version) => health.get('anrs', 'sessions', version) ?? 0,
    page: '/jank',
    parameters: { kind: 'anr' },
    hint: 'stalls over 5 s',
  },
  {
    label: 'Slow frames',
    unit: 'share',
    better: 'lower',
    value: (health, version) => health.get('frames', 'slow_share', version),
    samples: (health, version) => health.get('frames', 'frames_drawn', version) ?? 0,
    page: '/frames',
    hint: 'over the budget of the screen',
  },
  {
    label: 'Frozen frames',
    unit: 'share',
    better: 'lower',
    value: (health, version) => health.get('frames', 'frozen_share', version),
    samples: (health, version) => health.get('frames', 'frames_drawn', version) ?? 0,
    cases: (health, version) =>
      (health.get('frames', 'frozen_share', version) ?? 0) * (health.get('frames', 'frames_drawn', version) ?? 0),
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
    page: '/page-loads',
    hint: 'from opened to drawn',
  },
  {
    label: 'Cold start, p50',
    unit: 'ms',
    better: 'lower',
    value: (health, version) => health.get('starts', 'p50_ms', version),
    samples: (health, version) => health.get('starts', 'count', version) ?? 0,
    page: '/resources',
    parameters: { tab: 'starts' },
    hint: 'half start faster',
  },
  {
    label: 'Cold start, p75',
    unit: 'ms',
    better: 'lower',
    value: (health, version) => health.get('starts', 'p75_ms', version),
    samples: (health, version) => health.get('starts', 'count', version) ?? 0,
    page: '/resources',
    parameters: { tab: 'starts' },
    hint: 'three of four start faster',
  },
  {
    label: 'Spans with an error',
    unit: 'share',
    better: 'lower',
    value: (health, version) => health.get('spans', 'error_share', version),
    samples: (health, version) => health.get('spans', 'count', version) ?? 0,
    cases: (health, version) =>
      (health.get('spans', 'error_share', version) ?? 0) * (health.get('spans', 'count', version) ?? 0),
    page: '/spans',
    hint: 'of all spans',
  },
];
