// When a rule would have fired, as stretches of time by group. Pure.

import type { Schemas } from '../api/client';

export type Transition = Schemas['AlertTransition'];

export interface Stretch {
  group: string;
  /** Microseconds since the epoch, as `until`. */
  from: number;
  /** The end of what was tried while it goes on. */
  until: number;
  goesOn: boolean;
  /** Only the mix of devices changed: a moment, told to nobody. */
  isShift: boolean;
  summary: string;
  because: string;
  link: string;
}

/** The values of a group in a line; a rule without dimensions has one group. */
export function groupName(group: Record<string, string>): string {
  const values = Object.values(group).map((value) => value || '(none)');
  return values.length > 0 ? values.join(' · ') : 'Everything';
}

/** Each firing with its end, the earliest first. */
export function stretches(transitions: Transition[], end: number): Stretch[] {
  const all: Stretch[] = [];
  const open = new Map<string, Stretch>();
  for (const { at, what, group, summary, link } of transitions) {
    const name = groupName(group);
    if (what === 'resolved') {
      const begun = open.get(name);
      if (begun) Object.assign(begun, { until: at, goesOn: false, because: summary });
      open.delete(name);
      continue;
    }
    const isShift = what === 'mix_shift';
    const begun = {
      group: name,
      from: at,
      until: isShift ? at : end,
      goesOn: !isShift,
      isShift,
      summary,
      because: '',
      link,
    };
    all.push(begun);
    if (!isShift) open.set(name, begun);
  }
  return all;
}

/** Groups with their stretches, those that fire longest first. */
export function byGroup(all: Stretch[]): { group: string; stretches: Stretch[] }[] {
  const groups = new Map<string, Stretch[]>();
  for (const one of all) groups.set(one.group, [...(groups.get(one.group) ?? []), one]);
  const length = (of: Stretch[]) => of.reduce((sum, one) => sum + one.until - one.from, 0);
  return [...groups]
    .map(([group, of]) => ({ group, stretches: of }))
    .toSorted((a, b) => length(b.stretches) - length(a.stretches));
}

/** Where a time stands between two others, in percent. */
export function place(at: number, from: number, to: number): number {
  return to > from ? Math.min(100, Math.max(0, (100 * (at - from)) / (to - from))) : 0;
}

/** Midnights between two times, of which no more than `most` are told. */
export function days(from: number, to: number, most = 8): number[] {
  const first = new Date(from / 1000);
  first.setHours(24, 0, 0, 0);
  const all: number[] = [];
  for (const day = first; day.getTime() * 1000 < to; day.setDate(day.getDate() + 1)) all.push(day.getTime() * 1000);
  const step = Math.ceil(all.length / most);
  return all.filter((_, index) => index % step === 0);
}
