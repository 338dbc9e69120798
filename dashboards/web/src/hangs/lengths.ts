// The stalls that the page can show: by minimum duration, or stalls during which the process was killed. Pure.

import { STEPS } from '../jank/words';

export interface Length {
  /** The value of the URL parameter. */
  id: string;
  label: string;
  /** The title in sentences such as `Hangs of 2 s or longer`. */
  title: string;
  where: Record<string, string | string[]>;
}

const from = (step: string) => ({
  duration: STEPS.map(([name]) => name).slice(STEPS.findIndex(([name]) => name === step)),
});

/** The first one is the default. */
export const LENGTHS: Length[] = [
  { id: 'hang', label: 'From 500 ms', title: 'Hangs of 500 ms or longer', where: from('500ms_2s') },
  { id: 'micro', label: 'From 250 ms', title: 'Hangs of 250 ms or longer', where: from('250ms_500ms') },
  { id: 'severe', label: 'From 2 s', title: 'Hangs of 2 s or longer', where: from('2s_5s') },
  // Filters by kind, because roll-ups keep the kind but not the duration. The kind `anr` names the same stalls as `over_5s`.
  { id: 'anr', label: 'ANRs, from 5 s', title: 'ANRs', where: { kind: 'anr' } },
  { id: 'killed', label: 'Ended in a kill', title: 'Hangs that ended in a kill', where: { ended: 'killed' } },
];

export function lengthOf(query: URLSearchParams): Length {
  return LENGTHS.find((one) => one.id === query.get('hangs')) ?? LENGTHS[0]!;
}
