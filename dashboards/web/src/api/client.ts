// The API client. `npm run api` generates its types from the API document, so a wrong path or body does not compile.
// Only the types of openapi-fetch are used. The few lines here replace its code, which would be 2 % of all scripts.

import type { Client } from 'openapi-fetch';
import type { components, paths } from '../../.generated/schema';
import { Problem, isAborted } from './problem';
import { fetchWithSession } from './session_refresh';

export type Schemas = components['schemas'];

interface Options {
  params?: { path?: Record<string, unknown>; query?: Record<string, unknown> };
  body?: unknown;
  signal?: AbortSignal | null;
  parseAs?: 'text';
}

/** The path and query of a request. Exported for its test. */
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

/** Parses the body as JSON. Returns text if that fails, because a proxy may answer with an HTML page. */
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

/** Returns the body of a successful response. Throws a `Problem` if the request failed. */
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
