// The sample rate of the spans of one name. Pure.

import { isValues, merged, type Values } from './document';

interface SpanRate {
  name?: string;
  rate?: number;
}

/** A rate, and the id of the override that sets it. The rate of the base has no override. */
export interface RateOf {
  rate: number;
  override?: string;
}

/** The rate of a span in the base, and in each override that sets a different rate. `base` has all defaults filled in. */
export function ratesOf(name: string, base: Values, overrides: { id: string; patch?: unknown }[]): RateOf[] {
  const inBase = rateIn(base, name);
  const others = overrides.map(({ id, patch }) => ({ override: id, rate: rateIn(merged(base, patch ?? {}), name) }));
  return [{ rate: inBase }, ...others.filter(({ rate }) => rate !== inBase)];
}

function rateIn(document: unknown, name: string): number {
  const sampling = isValues(document) ? document.sampling : undefined;
  const spans = isValues(sampling) && isValues(sampling.spans) ? sampling.spans : {};
  const list = Array.isArray(spans.overrides) ? (spans.overrides as SpanRate[]) : [];
  const found = list.find((one) => matches(one.name ?? '', name));
  return Number(found?.rate ?? spans.default ?? 0);
}

/** Whether a glob matches a whole name, as on devices: `*` matches any characters, `?` matches one. ASCII case is ignored. */
export function matches(glob: string, name: string): boolean {
  const parts = [...glob].map((one) => {
    if (one === '*') return '.*';
    return one === '?' ? '.' : one.replace(/[\\^$.|+()[\]{}]/, '\\$&');
  });
  return new RegExp(`^${parts.join('')}$`, 'is').test(name);
}
