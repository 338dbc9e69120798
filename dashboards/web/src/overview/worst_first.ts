// What got worse from one version to the next, the worst first. Pure.

export interface Candidate {
  kind: string;
  name: string;
  /** What was measured, such as "p75". */
  measure: string;
  unit: string;
  value: number | null;
  base: number | null;
  /** On how many installs each stands: counts are scaled up by sample rates, installs are not. */
  installs: number;
  baseInstalls: number;
  /** Installs that are enough of this kind, on either side; none where the server left out what stands on little. */
  enough: number;
  /** What was not there before is a regression too. */
  mayBeNew?: boolean;
  /** Changes below this are none, in the unit of the measure. */
  least: number;
  href: string;
}

export interface Regression extends Candidate {
  value: number;
  base: number;
  /** 0.25 is a quarter more; infinite when it is new. */
  change: number;
}

/** Relative changes below this are noise of sampling. */
export const LEAST_CHANGE = 0.05;

/** All candidates are "lower is better". Those with few installs are counted apart, never shown as regressions. */
export function worstFirst(candidates: Candidate[]): { worse: Regression[]; better: Regression[]; tooFew: number } {
  const compared: Regression[] = [];
  let tooFew = 0;
  for (const one of candidates) {
    if (one.value === null || one.base === null) continue;
    if (one.base <= 0) {
      if (!one.mayBeNew || one.value <= 0) continue;
      if (one.installs < one.enough) tooFew += 1;
      else compared.push({ ...one, value: one.value, base: 0, change: Infinity });
      continue;
    }
    if (one.installs < one.enough || one.baseInstalls < one.enough) {
      tooFew += 1;
      continue;
    }
    const change = (one.value - one.base) / one.base;
    if (Math.abs(change) < LEAST_CHANGE || Math.abs(one.value - one.base) < one.least) continue;
    compared.push({ ...one, value: one.value, base: one.base, change });
  }
  return {
    worse: compared
      .filter((one) => one.change > 0)
      .toSorted((a, b) => (a.change === b.change ? b.installs - a.installs : b.change - a.change)),
    better: compared.filter((one) => one.change < 0).toSorted((a, b) => a.change - b.change),
    tooFew,
  };
}
