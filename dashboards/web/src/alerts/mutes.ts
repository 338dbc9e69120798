// Finds the mutes that cover an incident or a rule. Pure.

import type { Schemas } from '../api/client';
import { sameGroup } from './incident';
import { groupName } from './firing_periods';

export type Mute = Schemas['Mute'];

/** Whether the mute has not started yet. */
export function isBefore(mute: Mute, now = Date.now()): boolean {
  return mute.starts_at / 1000 > now;
}

/** The mutes of a rule and of the whole project. */
export function mutesOfRule(mutes: Mute[], rule: string): Mute[] {
  return mutes.filter((one) => !one.rule || one.rule === rule);
}

/** The mute that covers a group for the longest time. An active mute takes precedence over one that begins later. */
export function muteOf(
  mutes: Mute[],
  { rule, group }: { rule: string; group: Record<string, string> },
  now = Date.now(),
): Mute | null {
  const covers = mutesOfRule(mutes, rule).filter((one) => !one.group || sameGroup(one.group, group));
  const later = (one: Mute) => Number(isBefore(one, now));
  return covers.toSorted((a, b) => later(a) - later(b) || b.ends_at - a.ends_at)[0] ?? null;
}

/** The mute that currently covers an incident. `null` if there is none. */
export function activeMuteOf(mutes: Mute[], incident: Parameters<typeof muteOf>[1], now = Date.now()): Mute | null {
  const mute = muteOf(mutes, incident, now);
  return mute && !isBefore(mute, now) ? mute : null;
}

/** The scope of a mute, as text. */
export function coverage({ rule, group }: Mute): string {
  if (!rule) return 'every rule of the project';
  if (!group || Object.keys(group).length === 0) return 'the whole rule';
  return `only ${groupName(group)}`;
}
