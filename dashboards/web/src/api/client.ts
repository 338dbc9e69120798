// The API as the server's document describes it. `npm run api` makes the types, so a wrong path or body does not compile.

import createClient from 'openapi-fetch';
import type { components, paths } from '../../.generated/schema';
import { fetchWithSession } from './fetch_with_session';
import { Problem, isAborted } from './problem';

export type Schemas = components['schemas'];

export const api = createClient<paths>({ fetch: fetchWithSession });

/** The body of a success; everything else is thrown as a `Problem`. */
export async function ask<T>(answer: Promise<{ data?: T; error?: unknown; response: Response }>): Promise<T> {
  let settled;
  try {
    settled = await answer;
  } catch (error) {
    if (isAborted(error)) throw error;
    throw Problem.from(error);
  }
  const { data, error, response } = settled;
  if (!response.ok) throw Problem.of(response.status, error);
  return data as T;
}
