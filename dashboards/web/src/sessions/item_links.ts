// The pages that an event of a session leads to. Pure.

import type { Filters } from '../navigation/filters';
import { addressOf, only } from '../navigation/links';
import type { Item } from './timeline_layout';

const DAY_MS = 86_400_000;

export function linksOf(item: Item, chosen: Filters): { label: string; href: string }[] {
  const at = item.start / 1000;
  // A day before and after the event, because the chosen period may not include the event.
  const range = { kind: 'absolute' as const, from: new Date(at - DAY_MS), to: new Date(at + DAY_MS) };
  const filters: Filters = { ...chosen, range };
  const found: { label: string; href: string }[] = [];
  const { group, trace, span, name, start } = item.links;
  if (group) found.push({ label: 'Jank group', href: addressOf(`/jank/${group}`, filters, { tab: 'events' }) });
  if (trace) found.push({ label: 'Trace', href: addressOf(`/traces/${trace}`, chosen, { span: span! }) });
  if (name) found.push({ label: 'All spans of this name', href: addressOf('/spans', filters, { name }) });
  if (start) found.push({ label: 'App starts', href: addressOf('/app-starts', filters, { kind: start }) });
  if (item.kind === 'recomposition')
    found.push({ label: 'Recompositions', href: addressOf('/spans', filters, { tab: 'recompositions' }) });
  if (item.page && item.kind === 'page_load')
    found.push({ label: 'Loads of the page', href: addressOf('/page-loads', only(filters, 'page', item.page)) });
  if (item.page && (item.kind === 'frames' || item.kind === 'page'))
    found.push({ label: 'Frames of the page', href: addressOf('/frames', only(filters, 'page', item.page)) });
  return found;
}
