import { describe, expect, it } from 'vitest';
import { shortPath } from '../src/format/shortened_path';

const shown = (path: string, most: number) => {
  const { head, middle, tail } = shortPath(path, most);
  expect(head + middle + tail).toBe(path);
  return middle ? `${head}…${tail}` : path;
};

describe('a long path', () => {
  it('keeps its first folder and its last ones', () => {
    const path = '/builds/acme/shop/native/crates/cart/src/total.rs';
    expect(shown(path, 60)).toBe(path);
    expect(shown(path, 30)).toBe('/builds/…/cart/src/total.rs');
    expect(shown(path, 10)).toBe('/builds/…/total.rs');
  });

  it('keeps the name of its file, however long', () => {
    const name = `${'a'.repeat(80)}.rs`;
    expect(shown(name, 20)).toBe(name);
    expect(shown(`src/${name}`, 20)).toBe(`src/${name}`);
    expect(shown(`src/cart/${name}`, 20)).toBe(`src/…/${name}`);
  });

  it('may be an id', () => {
    expect(shown(`r8-map-id-${'0123456789abcdef'.repeat(4)}`, 56)).toBe('r8-map-id-0123456789abcd…');
  });

  it('may have backslashes', () => {
    expect(shown('C:\\builds\\acme\\shop\\src\\total.cpp', 20)).toBe('C:\\…\\src\\total.cpp');
  });
});
