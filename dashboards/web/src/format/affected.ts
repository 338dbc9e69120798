// The share of active installs that something affects, as text for all pages. Pure.

import { filterLabel, isDimension, type Filters } from '../navigation/filters';
import { period } from './times';
import { format } from './units';

export const SHARE_HINT =
  'The share of all installs that sent a batch in this period with these filters. If devices send only a sample, the true share may be larger.';
export const UNKNOWN_HINT =
  'The share is unknown with these filters, because batches contain no pages, networks or attributes.';

/** The heading of a column with installs and their share. */
export const INSTALLS_OF_ACTIVE = { label: 'Installs (share)', hint: SHARE_HINT };

/** `3.2 %`, or empty if one of the numbers is unknown. At most 100 %, because late batches can count an install before it is active. */
export function activeShare(installs: number | null | undefined, active: number | null | undefined): string {
  return active && typeof installs === 'number' ? format(Math.min(1, installs / active), 'share') : '';
}

/** `3.2 % of 500 installs`. Empty if one of the numbers is unknown. */
export function shareOfInstalls(installs: number | null | undefined, active: number | null | undefined): string {
  const share = activeShare(installs, active);
  return share && `${share} of ${format(Math.max(installs ?? 0, active ?? 0), 'count')} installs`;
}

/** The installs behind the shares of a table: `17 Nov – 26 Nov, app version 4.12.0`. */
export function activeIn(from: string, to: string, { chosen }: Pick<Filters, 'chosen'>, by: string[] = []): string {
  const label = (name: string) => (isDimension(name) ? filterLabel(name).replace(/^[A-Z](?=[a-z])/, lower) : name);
  const filtered = Object.entries(chosen).filter(([name]) => !by.includes(name));
  const where = filtered.map(([name, values = []]) => `${label(name)} ${values.map(shortened).join(' or ')}`);
  const same = by.map((name) => `the same ${label(name)}`);
  return [period(from, to), ...where, ...same].join(', ');
}

const lower = (letter: string) => letter.toLowerCase();
/** Shortens ids, because the first characters are enough to recognise an id. */
const shortened = (value: string) => (/^[0-9a-f-]{36}$/i.test(value) ? `${value.slice(0, 8)}…` : value);
