// The periods in which a rule would have fired, by group. Pure.

import type { Schemas } from '../api/client';
import { midnights } from '../format/zone.svelte';

export type Transition = Schemas['AlertTransition'];

export interface Stretch {
  group: string;
  /** In microseconds since the epoch, like `until`. */
  from: number;
  /** The time of the last evaluation if the group still fires. */
  until: number;
  goesOn: boolean;
  /** Whether only the mix of devices changed. Such an event is a single point in time and sends no notification. */
  isShift: boolean;
  summary: string;
  because: string;
  link: string;
}

/** The values of a group on one line. The group of a rule without dimensions has no values. */
export function groupName(group: Record<string, string>): string {
  const values = Object.values(group).map((value) => value || '(none)');
  return values.length > 0 ? values.join(' · ') : 'Everything';
}

/** The periods of firing, the earliest first. `end` is the end of the preview. */
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

/** Groups the periods. The group that fires longest is first. */
export function byGroup(all: Stretch[]): { group: string; stretches: Stretch[] }[] {
  const groups = new Map<string, Stretch[]>();
  for (const one of all) groups.set(one.group, [...(groups.get(one.group) ?? []), one]);
  const length = (of: Stretch[]) => of.reduce((sum, one) => sum + one.until - one.from, 0);
  return [...groups]
    .map(([group, of]) => ({ group, stretches: of }))
    .toSorted((a, b) => length(b.stretches) - length(a.stretches));
}

/** The position of a time between two others, in percent. */
export function place(at: number, from: number, to: number): number {
  return to > from ? Math.min(100, Math.max(0, (100 * (at - from)) / (to - from))) : 0;
}

/** Midnights between two times, at most `most` of them. */
export function days(from: number, to: number, most = 8): number[] {
  const all = midnights(new Date(from / 1000), new Date(to / 1000)).map((day) => day.getTime() * 1000);
  const step = Math.ceil(all.length / most);
  return all.filter((_, index) => index % step === 0);
}
