// The state of a person and of an open invitation, as text. Pure.

import type { Schemas } from '../api/client';
import { ago, fromMicros } from '../format/units';

type Person = Pick<
  Schemas['User'],
  'disabled_at' | 'has_password' | 'has_identity' | 'is_admin' | 'invitation_expires_at'
>;

export interface PersonState {
  text: string;
  kind: '' | 'good' | 'warn' | 'bad';
  /** The open password link of a person who can log in already. */
  note?: string;
}

/** Whether the person has no way to log in yet. */
export function isInvited(person: Person): boolean {
  return !person.has_password && !person.has_identity;
}

/** Whether the person has a link that still works. */
export function hasOpenLink(person: Person, now: number): boolean {
  const end = person.invitation_expires_at;
  return person.disabled_at == null && end != null && fromMicros(end).getTime() > now;
}

export function personState(person: Person, now: number): PersonState {
  if (person.disabled_at != null) return { text: 'disabled', kind: '' };
  const end = person.invitation_expires_at;
  const ends = end == null ? '' : ago(fromMicros(end), new Date(now));
  if (isInvited(person)) {
    if (end == null) return { text: 'no invitation', kind: 'warn' };
    if (!hasOpenLink(person, now)) return { text: `invitation expired ${ends}`, kind: 'bad' };
    return { text: `invited, expires ${ends}`, kind: 'warn' };
  }
  const text = person.is_admin ? 'admin of the installation' : 'active';
  const kind = person.is_admin ? '' : 'good';
  return hasOpenLink(person, now) ? { text, kind, note: `password link expires ${ends}` } : { text, kind };
}
