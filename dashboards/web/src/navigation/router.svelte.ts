// Where the reader is: the browser's address is the state, so that links, the back button and reloads work by themselves.

import { onDestroy } from 'svelte';
import { readFilters, writeFilters, type Filters } from './filters';

let path = $state('/');
let search = $state('');
const query = $derived(new URLSearchParams(search));
// Compared as text: a tab that is opened changes the query but not the filters, and nothing is asked again.
const filterText = $derived(writeFilters(readFilters(query)).toString());
const filters = $derived(readFilters(new URLSearchParams(filterText)));

export const location = {
  get path() {
    return path;
  },
  /** The whole query, to read: change it with `navigate`, `setFilters` or `setParameter`. */
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

/** Asks before the page is left while `isUnsaved` says so. Called while a component is made; ends with it. */
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
  return (stays && sameTab) || !unsaved?.() || confirm('What you changed is not saved. Leave it?');
}

/** Goes to an address of this interface. `replace` leaves no step to go back to. */
export function navigate(to: string, options: { replace?: boolean } = {}) {
  if (to === window.location.pathname + window.location.search || !mayLeave(to)) return;
  history[options.replace ? 'replaceState' : 'pushState'](null, '', to);
  read();
}

/** The address of a page, with the filters of now; what belongs to one page only, such as a tab, is given anew. */
export function href(page: string, parameters: Record<string, string> = {}): string {
  return withQuery(page, writeFilters(filters, new URLSearchParams(parameters)));
}

export function setFilters(wanted: Filters, options: { replace?: boolean } = {}) {
  navigate(withQuery(path, writeFilters(wanted, query)), options);
}

/** Sets or, with an empty value, removes what one page keeps in the address. */
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

/** Plain clicks on links of ours stay within the page; others are the browser's. */
function follow(event: MouseEvent) {
  if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey)
    return;
  const link = (event.target as Element | null)?.closest?.('a[href]');
  if (!(link instanceof HTMLAnchorElement) || link.target || link.hasAttribute('download')) return;
  if (link.origin !== window.location.origin || link.getAttribute('href')!.startsWith('#')) return;
  event.preventDefault();
  navigate(link.pathname + link.search);
}
