// The state of a key or token, as text. Pure.

import { ago, fromMicros } from '../format/units';

interface Key {
  revoked_at?: number | null;
  expires_at?: number | null;
}

export function keyState(key: Key, now: number): { text: string; kind: '' | 'good' | 'warn' } {
  if (key.revoked_at != null) return { text: 'revoked', kind: '' };
  if (hasEnded(key, now)) return { text: 'expired', kind: '' };
  if (key.expires_at == null) return { text: 'active', kind: 'good' };
  return { text: `expires ${ago(fromMicros(key.expires_at), new Date(now))}`, kind: 'warn' };
}

/** Revoked, or expired. */
export function hasEnded(key: Key, now: number): boolean {
  if (key.revoked_at != null) return true;
  return key.expires_at != null && fromMicros(key.expires_at).getTime() <= now;
}
