// The share of active installs that something concerns. No other module words it. Pure.

import { format } from './units';

export const SHARE_HINT =
  'Active installs sent a batch in the same period, with the same filters. Where devices send only a sample, the share is at least this large.';
export const UNKNOWN_HINT =
  'Batches do not name pages or networks, so the active installs with these filters are unknown.';

/** The heading of a column with installs and their share. */
export const INSTALLS_OF_ACTIVE = { label: 'Installs (share)', hint: SHARE_HINT };

/** `3.2 %`. Empty if one of the numbers is unknown. Late batches can count an install before it is active. */
export function activeShare(installs: number | null | undefined, active: number | null | undefined): string {
  return active && typeof installs === 'number' ? format(Math.min(1, installs / active), 'share') : '';
}

/** `3.2 % of installs`. Empty if one of the numbers is unknown. */
export function shareOfInstalls(installs: number | null | undefined, active: number | null | undefined): string {
  const share = activeShare(installs, active);
  return share && `${share} of installs`;
}
