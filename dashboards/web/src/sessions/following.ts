// The freshness of a followed session. Pure.

/** The interval between requests for a followed session. */
export const EVERY_MS = 4000;
/** After this time without a new batch, the session has ended or its device is offline. */
export const SILENCE_MS = 600_000;

export function isSilent(received: string, now: Date): boolean {
  return now.getTime() - Date.parse(received) > SILENCE_MS;
}

/** Returns how long ago the last batch arrived, and how old its newest event was at the arrival. */
export function freshness({ received, end }: { received: string; end: string }, now: Date) {
  return {
    agoMs: Math.max(0, now.getTime() - Date.parse(received)),
    behindMs: Math.max(0, Date.parse(received) - Date.parse(end)),
  };
}
