// Saved views: the address of a page without its project, and how to open it again. Pure.

import type { Schemas } from '../api/client';
import { readFilters } from '../navigation/filters';
import { routeOf } from '../navigation/routes';
import { rangeLabel } from '../navigation/time_range';

export type SavedView = Schemas['SavedView'];

/** The same limit as the server's. */
export const MAX_NAME = 80;

/** The path and query to save. A relative period stays relative. */
export function addressToSave(path: string, query: URLSearchParams): string {
  const kept = new URLSearchParams(query);
  kept.delete('project');
  return kept.size > 0 ? `${path}?${kept}` : path;
}

/** The URL that opens a view in a project. */
export function openAddress({ address }: Pick<SavedView, 'address'>, project: string): string {
  const [path, query] = parts(address);
  query.set('project', project);
  return `${path}?${query}`;
}

/** Whether a page shows a view: the same path, and the same parameters in any order. */
export function isShown({ address }: Pick<SavedView, 'address'>, path: string, query: URLSearchParams): boolean {
  const [ofView, asked] = parts(address);
  return ofView === path && sorted(asked) === sorted(query);
}

/** `Jank, last 24 hours, 2 filters`. */
export function aboutView({ address }: Pick<SavedView, 'address'>): string {
  const [path, query] = parts(address);
  const { range, chosen, baseVersion } = readFilters(query);
  const count = Object.keys(chosen).length;
  const label = rangeLabel(range);
  return [
    routeOf(path)?.title ?? 'Page not found',
    range.kind === 'relative' ? label.charAt(0).toLowerCase() + label.slice(1) : label,
    ...(count > 0 ? [`${count} ${count === 1 ? 'filter' : 'filters'}`] : []),
    ...(baseVersion ? [`compared with ${baseVersion}`] : []),
  ].join(', ');
}

export function byName(views: SavedView[]): SavedView[] {
  return views.toSorted((a, b) => a.name.localeCompare(b.name, 'en'));
}

function parts(address: string): [path: string, query: URLSearchParams] {
  const [path = '/', ...query] = address.split('?');
  return [path, new URLSearchParams(query.join('?'))];
}

function sorted(query: URLSearchParams): string {
  const kept = new URLSearchParams(query);
  kept.delete('project');
  return JSON.stringify([...kept].map((pair) => pair.join('=')).toSorted());
}
