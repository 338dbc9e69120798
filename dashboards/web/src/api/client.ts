// The API as the server's document describes it. `npm run api` makes the types, so a wrong path or body does not compile.
// Of openapi-fetch only the types are used: what it does at run time is the few lines here, a fiftieth of all scripts.

import type { Client } from 'openapi-fetch';
import type { components, paths } from '../../.generated/schema';
import { fetchWithSession } from './fetch_with_session';
import { Problem, isAborted } from './problem';

export type Schemas = components['schemas'];

interface Options {
  params?: { path?: Record<string, unknown>; query?: Record<string, unknown> };
  body?: unknown;
  signal?: AbortSignal | null;
  parseAs?: 'text';
}

/** Path and query of a question. Exported for its test. */
export function filled(path: string, { path: places = {}, query = {} }: NonNullable<Options['params']> = {}): string {
  const text = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    for (const one of [value].flat()) if (one !== undefined && one !== null) text.append(name, String(one));
  }
  const whole = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(places[name])));
  return text.size > 0 ? `${whole}?${text}` : whole;
}

function by(method: string) {
  return async (path: string, { params, body, signal, parseAs }: Options = {}) => {
    const json = body !== undefined;
    const request = new Request(new URL(filled(path, params), window.location.origin), {
      method,
      signal,
      ...(json && { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }),
    });
    const response = await fetchWithSession(request);
    const text = await response.text();
    if (response.ok) return { data: parseAs === 'text' || !text ? text : JSON.parse(text), response };
    return { error: parsed(text), response };
  };
}

/** What stands before the server may answer with a page. */
function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}

type Methods = Pick<Client<paths>, 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'>;
export const api = Object.fromEntries(
  ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'].map((method) => [method, by(method)]),
) as unknown as Methods;

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
