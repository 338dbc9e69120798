// Ranks changes between two versions, the worst first. Pure.

import { changeOf, relativeChange, type Evidence } from '../versions/change';

export interface Candidate extends Evidence {
  kind: string;
  /** The owner of a jank group. Other candidates have none. */
  owner?: string;
  name: string;
  /** The measure, such as "p75". */
  measure: string;
  unit: string;
  value: number | null;
  base: number | null;
  installs: number;
  /** The active installs of the version. `null` if unknown. */
  active: number | null;
  /** Whether the base version has no stored jank of the group. */
  isNew?: boolean;
  /** Smaller changes, in the unit of the measure, do not count. */
  least: number;
  href: string;
}

export interface Regression extends Candidate {
  value: number;
  base: number;
  /** 0.25 is a quarter more. Infinite if the candidate is new. */
  change: number;
}

export interface Ranked {
  worse: Regression[];
  better: Regression[];
  tooFew: number;
  /** Changes of five percent or more that are not significant. */
  byChance: number;
  /** The period and the filters by which `active` was counted. */
  basis?: string;
}

/** The changes of one kind and of one owner. Empty texts select all. */
export function chosenOf(rows: Regression[], { kind, owner }: { kind: string; owner: string }): Regression[] {
  return rows.filter((row) => (!kind || row.kind === kind) && (!owner || row.owner === owner));
}

/** Lower is better for all candidates. Candidates with few samples, or whose change may be chance, are counted but not ranked. */
export function worstFirst(candidates: Candidate[]): Ranked {
  const ranked: Ranked = { worse: [], better: [], tooFew: 0, byChance: 0 };
  for (const one of candidates) {
    const { value, base } = one;
    if (value === null || base === null) continue;
    const change = changeOf(value, base, 'lower', one.unit, one);
    if (change?.verdict === 'few') ranked.tooFew += 1;
    if (Math.abs(value - base) < one.least) continue;
    if (change?.verdict === 'unclear') ranked.byChance += 1;
    const regression = { ...one, value, base, change: relativeChange(value, base) };
    if (change?.verdict === 'worse') ranked.worse.push(regression);
    if (change?.verdict === 'better') ranked.better.push(regression);
  }
  ranked.worse.sort((a, b) => (a.change === b.change ? b.installs - a.installs : b.change - a.change));
  ranked.better.sort((a, b) => a.change - b.change);
  return ranked;
}
