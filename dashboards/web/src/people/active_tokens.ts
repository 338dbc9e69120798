// The active API tokens that a person created. Pure.

import type { Schemas } from '../api/client';
import { hasEnded } from '../keys/key_state';

type Token = Pick<Schemas['ApiToken'], 'made_by' | 'revoked_at' | 'expires_at'>;

/** `email` identifies the person. */
export function countActive(tokens: Token[], email: string, now: number): number {
  return tokens.filter((token) => token.made_by === email && !hasEnded(token, now)).length;
}

export function activeText(count: number): string {
  if (count === 0) return 'no active API tokens';
  return count === 1 ? '1 active API token' : `${count} active API tokens`;
}
