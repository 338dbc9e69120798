// Whether a key or token works, in words. Pure.

import { ago, fromMicros } from '../format/units';

export function keyState(
  key: { revoked_at?: number | null; expires_at?: number | null },
  now: number,
): { text: string; kind: '' | 'good' | 'warn' } {
  if (key.revoked_at != null) return { text: 'revoked', kind: '' };
  if (key.expires_at == null) return { text: 'works', kind: 'good' };
  const end = fromMicros(key.expires_at);
  if (end.getTime() <= now) return { text: 'ended', kind: '' };
  return { text: `ends ${ago(end, new Date(now))}`, kind: 'warn' };
}
