// On how many installs a comparison must stand. Counts are scaled up by sample rates, installs are not: they tell how many were measured.

/** For percentiles and shares, and for the number of one jank, on either side. */
export const ENOUGH = { measured: 20, janks: 8 };
