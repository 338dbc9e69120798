// On how many installs a comparison must stand. Counts are scaled up by sample rates, installs are not: they tell how many were measured.

/** For percentiles and shares, and for the number of one jank, on either side. */
export const ENOUGH = { measured: 20, janks: 8 };

/** How many single measurements, on either side, a percentile must stand on before its change is said, and before it ranks. */
export const ENOUGH_SAMPLES = { said: 30, ranked: 50 };
