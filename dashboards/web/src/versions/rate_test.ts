// Tests whether something became more frequent, such as janks per hour of use. Pure.
//
// The server tests values of one signal. A rate has its events in one signal and its exposure in another, so this module tests the sums.
// Events of one install are not independent, so each affected install counts as one draw, and the variance is twice that of
// independent draws.

export interface Rate {
  /** The number of events, such as janks. */
  count: number;
  /** The installs with at least one event. */
  installs: number;
  /** The divisor of the rate, such as hours of use. */
  exposure: number;
}

const OVERDISPERSION = 2;
/** The same level as in the server's test. */
export const SIGNIFICANCE = 0.01;

/** The two-sided probability that rates differ this much by chance. */
export function rateP(now: Rate, base: Rate): number {
  if (now.exposure <= 0 || base.exposure <= 0 || now.installs + base.installs === 0) return 1;
  if (now.count > 0 && base.count > 0 && now.installs > 0 && base.installs > 0) {
    const ratio = Math.log(now.count / now.exposure / (base.count / base.exposure));
    return twoSided(ratio / Math.sqrt(OVERDISPERSION / now.installs + OVERDISPERSION / base.installs));
  }
  // All events are on one side. If only chance decides, the probability that an affected install is on this side is the side's share of the
  // exposure.
  const side = now.count > 0 ? now : base;
  const share = side.exposure / (now.exposure + base.exposure);
  return Math.min(1, 2 * share ** side.installs);
}

/** Corrects p-values for the number of comparisons (Holm, 1979), in the order given. */
export function holm(p: number[]): number[] {
  const order = p.map((_, place) => place).toSorted((a, b) => p[a]! - p[b]!);
  const corrected = p.map(() => 1);
  let least = 0;
  order.forEach((place, rank) => {
    least = Math.max(least, Math.min(1, p[place]! * (p.length - rank)));
    corrected[place] = least;
  });
  return corrected;
}

/** The two-sided p-value of a standard score. Uses the error function by Abramowitz and Stegun, 7.1.26. */
function twoSided(z: number): number {
  const x = Math.abs(z) / Math.SQRT2;
  const t = 1 / (1 + 0.3275911 * x);
  const polynomial = t * (0.254829592 + t * (-0.284496736 + t * (1.421413741 + t * (-1.453152027 + t * 1.061405429))));
  return polynomial * Math.exp(-x * x);
}
