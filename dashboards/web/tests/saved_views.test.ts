import { expect, test } from 'vitest';
import { aboutView, addressToSave, byName, isShown, openAddress, type SavedView } from '../src/saved_views/views';

const view = (address: string, name = 'A view'): SavedView => ({
  id: name,
  name,
  address,
  created_at: 0,
  created_by: 'user:1',
  updated_at: 0,
});

test('a view is saved without its project, with its relative period, and opens in any project', () => {
  const address = addressToSave('/jank', new URLSearchParams('project=shop&range=24h&page=Caf%C3%A9&page=A%2FB'));
  expect(address).toBe('/jank?range=24h&page=Caf%C3%A9&page=A%2FB');
  expect(addressToSave('/', new URLSearchParams('project=shop'))).toBe('/');
  expect(openAddress(view(address), 'bank')).toBe('/jank?range=24h&page=Caf%C3%A9&page=A%2FB&project=bank');
  expect(openAddress(view('/jank?project=shop'), 'bank')).toBe('/jank?project=bank');
  expect(openAddress(view('/'), 'bank')).toBe('/?project=bank');
});

test('an address never contains two slashes in a row, which the server rejects', () => {
  const query = new URLSearchParams({ q: 'https://example.com//x', text: '"<>`\\#' });
  expect(addressToSave('/spans', query)).not.toMatch(/\/\/|["<>`\\#]/);
});

test('a page shows a view if path and parameters are equal in any order', () => {
  const one = view('/jank?range=24h&page=A&page=B');
  expect(isShown(one, '/jank', new URLSearchParams('page=B&project=shop&page=A&range=24h'))).toBe(true);
  expect(isShown(one, '/frames', new URLSearchParams('page=B&page=A&range=24h'))).toBe(false);
  expect(isShown(one, '/jank', new URLSearchParams('page=A&range=24h'))).toBe(false);
});

test('a view is described by its page, period, filters and base', () => {
  expect(aboutView(view('/jank/123?range=24h&page=A&page=B&base_app_version=4.11.0'))).toBe(
    'Jank, last 24 hours, 1 filter, compared with 4.11.0',
  );
  expect(aboutView(view('/spans?name=pay&attribute.payment=card&os_name=ios'))).toBe('Spans, last 7 days, 2 filters');
  expect(aboutView(view('/app-starts'))).toBe('App starts, last 7 days');
  expect(aboutView(view('/gone'))).toBe('Page not found, last 7 days');
});

test('views are sorted by name, ignoring case', () => {
  const names = byName([view('/', 'b'), view('/', 'C'), view('/', 'a')]).map(({ name }) => name);
  expect(names).toEqual(['a', 'b', 'C']);
});
