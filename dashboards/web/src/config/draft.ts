// The draft of a configuration: documents as typed, and conditions as rows where possible. Pure.

import type { Fault } from '../api/problem';
import { jsonFault } from './json_lines';
import { fromRows, toRows, type ConditionRow } from './condition_rows';

export interface OverrideDraft {
  /** Identifies the override while its id is edited and the order changes. */
  key: number;
  id: string;
  note: string;
  enabled: boolean;
  /** RFC 3339, or null for no end. */
  expiresAt: string | null;
  /** `null` if the condition is edited as JSON. */
  rows: ConditionRow[] | null;
  whenText: string;
  patchText: string;
}

export interface Draft {
  baseText: string;
  overrides: OverrideDraft[];
}

let nextKey = 1;

export function toDraft(configuration: unknown): Draft {
  const { base = {}, overrides = [] } = (configuration ?? {}) as { base?: unknown; overrides?: unknown[] };
  return { baseText: pretty(base), overrides: overrides.map((one) => toOverride(one as Record<string, unknown>)) };
}

export function newOverride(taken: string[], patch: unknown = {}, version = ''): OverrideDraft {
  let number = taken.length + 1;
  while (taken.includes(`override-${number}`)) number += 1;
  return toOverride({ id: `override-${number}`, when: { app_version: version }, patch });
}

function toOverride(written: Record<string, unknown>): OverrideDraft {
  nextKey += 1;
  return {
    key: nextKey,
    id: String(written.id ?? ''),
    note: String(written.note ?? ''),
    enabled: written.enabled !== false,
    expiresAt: typeof written.expires_at === 'string' ? written.expires_at : null,
    rows: toRows(written.when),
    whenText: pretty(written.when ?? { all: [] }),
    patchText: pretty(written.patch ?? {}),
  };
}

/** The configuration to send, and a fault for each text that is not valid JSON. */
export function toConfiguration(draft: Draft): { configuration: { base: never; overrides: never[] }; faults: Fault[] } {
  const faults: Fault[] = [];
  const read = (text: string, path: string): unknown => {
    const fault = jsonFault(text);
    if (!fault) return JSON.parse(text);
    faults.push({ path, code: 'unreadable', message: `line ${fault.line}: ${fault.message}` });
    return {};
  };
  const base = read(draft.baseText, 'base');
  const overrides = draft.overrides.map((one, index) => ({
    id: one.id,
    ...(one.note ? { note: one.note } : {}),
    ...(one.enabled ? {} : { enabled: false }),
    ...(one.expiresAt ? { expires_at: one.expiresAt } : {}),
    when: one.rows ? fromRows(one.rows) : read(one.whenText, `overrides[${index}].when`),
    patch: read(one.patchText, `overrides[${index}].patch`),
  }));
  return { configuration: { base: base as never, overrides: overrides as never[] }, faults };
}

/** The canonical text of a configuration, for comparison and display. Configurations that differ have different texts. */
export function configurationText(configuration: unknown): string {
  const draft = toDraft(configuration);
  return pretty(toConfiguration(draft).configuration);
}

export function draftText(draft: Draft): string {
  return pretty(toConfiguration(draft).configuration);
}

export function moved<T>(list: T[], from: number, to: number): T[] {
  const copy = [...list];
  const [one] = copy.splice(from, 1);
  copy.splice(Math.max(0, Math.min(copy.length, to)), 0, one!);
  return copy;
}

/** The faults at or below a path, with their paths relative to this path. */
export function faultsAt(faults: Fault[], place: string): Fault[] {
  return faults
    .filter(({ path }) => path === place || path.startsWith(`${place}.`) || path.startsWith(`${place}[`))
    .map((fault) => ({ ...fault, path: fault.path.slice(place.length).replace(/^\./, '') }));
}

function pretty(value: unknown): string {
  return JSON.stringify(value, null, 2);
}
