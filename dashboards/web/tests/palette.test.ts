import { describe, expect, it } from 'vitest';
import { bestSpans, matching, recognised, type Command } from '../src/palette/matching';

const command = (label: string, words = ''): Command => ({ id: label, section: 'Pages', label, words, run: () => {} });

describe('the palette', () => {
  it('finds commands by all words, and lists those first that begin with the text', () => {
    const all = [command('Use dark colours', 'change theme'), command('Page loads'), command('Overview of a page')];
    const labels = (text: string) => matching(all, text).map(({ label }) => label);
    expect(labels('page')).toEqual(['Page loads', 'Overview of a page']);
    expect(labels('THEME dark')).toEqual(['Use dark colours']);
    expect(labels('theme light')).toEqual([]);
    expect(labels('')).toHaveLength(3);
  });

  it('lists spans with the exact name first, and requests after functions', () => {
    const all = ['POST /checkout/submit', 'checkout', 'a.checkoutLater', 'checkoutNow'];
    const spans = all.map((name) => ({ name, kind: name.startsWith('POST') ? 'network' : 'method' }));
    const sorted = ['checkout', 'checkoutNow', 'a.checkoutLater', 'POST /checkout/submit'];
    expect(bestSpans(spans, 'Checkout').map(({ name }) => name)).toEqual(sorted);
    expect(bestSpans(spans, 'post /checkout/submit')[0]!.name).toBe('POST /checkout/submit');
  });

  it('lists only some of many matches', () => {
    const many = Array.from({ length: 500 }, (_, index) => command(`Project ${index}`));
    expect(matching(many, 'project')).toHaveLength(6);
  });

  it('recognises ids', () => {
    const uuid = '5d84157b-12f8-4f32-a7ce-0da7187ef46b';
    const hex = uuid.replaceAll('-', '');
    expect(recognised(` ${uuid.toUpperCase()} `)).toEqual({ kind: 'hex', uuid, hex });
    expect(recognised(hex)).toEqual({ kind: 'hex', uuid, hex });
    expect(recognised(`{${uuid.toUpperCase()}}`)).toEqual({ kind: 'hex', uuid, hex });
    expect(recognised('12701327231472445055')).toEqual({ kind: 'group', id: '12701327231472445055' });
    for (const text of ['checkout', '4.12.0', '4120', `${hex}0`, `${uuid.slice(0, 20)}-${uuid.slice(20)}`])
      expect(recognised(text)).toBeNull();
  });
});
