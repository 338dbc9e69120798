// The router. The URL is the only state, so links, the back button and reloads work without further code.

import { onDestroy } from 'svelte';
import { addressOf } from './links';
import { attributedSignal, readFilters, supportedBy, withoutAttributes, writeFilters, type Filters } from './filters';

let path = $state('/');
let search = $state('');
const query = $derived(new URLSearchParams(search));
// Compared as text, so that opening a tab, which does not change the filters, triggers no requests.
const filterText = $derived(writeFilters(supportedBy(path, readFilters(query))).toString());
const filters = $derived(readFilters(new URLSearchParams(filterText)));

export const location = {
  get path() {
    return path;
  },
  /** The whole query, read-only. Change it with `navigate`, `setFilters` or `setParameter`. */
  get query() {
    return query;
  },
  get filters() {
    return filters;
  },
  get project() {
    return filters.project;
  },
};

export function startRouter() {
  read();
  addEventListener('popstate', read);
  document.addEventListener('click', follow);
}

function read() {
  const address = window.location;
  path = address.pathname.length > 1 ? address.pathname.replace(/\/+$/, '') : '/';
  search = address.search;
}

let unsaved: (() => boolean) | null = null;

/** Asks for confirmation before the user leaves a page with unsaved changes. Call during component initialisation. */
export function warnBeforeLeaving(isUnsaved: () => boolean) {
  const warn = (event: BeforeUnloadEvent) => {
    if (isUnsaved()) event.preventDefault();
  };
  unsaved = isUnsaved;
  addEventListener('beforeunload', warn);
  onDestroy(() => {
    if (unsaved === isUnsaved) unsaved = null;
    removeEventListener('beforeunload', warn);
  });
}

function mayLeave(to: string): boolean {
  const target = new URL(to, window.location.origin);
  const here = new URLSearchParams(search);
  const stays = target.pathname === path && target.searchParams.get('project') === here.get('project');
  const sameTab = target.searchParams.get('tab') === here.get('tab');
  return (stays && sameTab) || !unsaved?.() || confirm('Your changes are not saved. Leave the page?');
}

/** Opens a URL of this interface. `replace` adds no entry to the history of the browser. */
export function navigate(to: string, options: { replace?: boolean } = {}) {
  if (to === window.location.pathname + window.location.search || !mayLeave(to)) return;
  history[options.replace ? 'replaceState' : 'pushState'](null, '', to);
  read();
}

/** The URL of a page with the current filters. `parameters` belong to the page, such as a tab. */
export function href(page: string, parameters: Record<string, string> = {}): string {
  // Spans and metrics have different attributes.
  const kept = attributedSignal(page) === attributedSignal(path) ? filters : withoutAttributes(filters);
  return addressOf(page, kept, parameters);
}

export function setFilters(wanted: Filters, options: { replace?: boolean } = {}) {
  navigate(withQuery(path, writeFilters(wanted, query)), options);
}

/** Sets a URL parameter of the page. An empty value removes it. */
export function setParameter(name: string, value: string, options: { replace?: boolean } = {}) {
  const changed = new URLSearchParams(search);
  if (value) changed.set(name, value);
  else changed.delete(name);
  navigate(withQuery(path, changed), options);
}

function withQuery(page: string, parameters: URLSearchParams): string {
  const text = parameters.toString();
  return text ? `${page}?${text}` : page;
}

/** Handles plain clicks on internal links. The browser handles all other clicks. */
function follow(event: MouseEvent) {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
    return;
  const link = (event.target as Element | null)?.closest?.('a[href]');
  if (!(link instanceof HTMLAnchorElement) || link.target || link.hasAttribute('download')) return;
  if (link.origin !== window.location.origin || link.getAttribute('href')!.startsWith('#')) return;
  event.preventDefault();
  navigate(link.pathname + link.search);
}
