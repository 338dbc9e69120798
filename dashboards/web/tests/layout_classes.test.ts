import { describe, expect, it } from 'vitest';
import styles from '../src/styles/base.css?raw';
import { classesIn, styledIn } from './class_names';

const COMPONENTS = import.meta.glob<string>('../src/**/*.svelte', { query: '?raw', import: 'default', eager: true });
/** The shared classes that lay out the children of an element in a grid. */
const GRIDS = [...styles.matchAll(/^\.([\w-]+) \{\s*display: grid;/gm)].map(([, name]) => name!);
/** Elements for text and for drawings. Their content would be torn into the cells of a grid. */
const NO_CONTAINERS = /^(p|span|strong|em|h[1-6]|td|th|a|button|svg|g|text|path|rect|line|circle)$/;

/** Parses only sources with the name of a grid, because parsing is slow. */
const torn = (source: string) =>
  (GRIDS.some((name) => source.includes(name)) ? classesIn(source) : []).filter(
    ({ tag, names }) => NO_CONTAINERS.test(tag) && names.some((name) => GRIDS.includes(name)),
  );

describe('a shared class', () => {
  it('is found in each form of the attribute', () => {
    const forms = [
      '<p class="muted two">a</p>',
      '<p class="muted {wide}">a</p>',
      "<p class={['muted', { two: wide }]}>a</p>",
      "<p class={wide && 'two'}>a</p>",
      '<p class={`muted two`}>a</p>',
      '<p class:two={wide}>a</p>',
      '<div class="two">a</div>',
    ];
    expect(forms.map((one) => torn(one).length)).toEqual([1, 0, 1, 1, 1, 1, 0]);
    expect(styledIn('<p>a</p><style>p .two:hover { color: red; }</style>')).toEqual(['two']);
  });

  // The timeout is long, because a busy machine parses slowly.
  it(
    'that lays out a grid is on no text, so that no name of a component takes it by accident',
    { timeout: 60_000 },
    () => {
      expect(GRIDS).toEqual(['fact-list', 'cards', 'two']);
      const found = Object.entries(COMPONENTS).flatMap(([path, source]) =>
        torn(source).map(({ tag, names }) => `${path}: <${tag} class="${names.join(' ')}">`),
      );
      expect(found).toEqual([]);
    },
  );
});
