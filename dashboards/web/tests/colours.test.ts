import { describe, expect, it } from 'vitest';
import { SERIES_COLOURS } from '../src/components/series_style';
import css from '../src/styles/tokens.css?raw';
import { versionColour } from '../src/versions/version_colours';

const [light = '', dark = ''] = css.split(":root[data-theme='dark']");

type Triple = [number, number, number];

/** A colour in linear light, with parts from 0 to 1. */
function linear(theme: string, name: string): Triple {
  return ofHex(new RegExp(`--${name}: #([0-9a-f]{6});`).exec(theme)![1]!);
}

function ofHex(hex: string): Triple {
  const part = (place: number) => {
    const value = parseInt(hex.slice(2 * place, 2 * place + 2), 16) / 255;
    return value <= 0.04045 ? value / 12.92 : ((value + 0.055) / 1.055) ** 2.4;
  };
  return [part(0), part(1), part(2)];
}

/** OKLab (Ottosson, 2020), in which the distance of two colours is about how different they look. */
function oklab([r, g, b]: Triple): Triple {
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

const distance = (one: Triple, other: Triple) => Math.hypot(...one.map((part, place) => part - other[place]!));

/** The contrast of WCAG 2. */
function contrast(one: Triple, other: Triple): number {
  const [high, low] = [one, other]
    .map(([r, g, b]) => 0.2126 * r + 0.7152 * g + 0.0722 * b)
    .toSorted((a, b) => b - a) as [number, number];
  return (high + 0.05) / (low + 0.05);
}

describe.each([
  ['light', light],
  ['dark', dark],
])('series in %s colours', (_, theme) => {
  const names = Array.from({ length: SERIES_COLOURS }, (_, place) => `series-${place + 1}`);
  const pairs = names.flatMap((one, place) => names.slice(place + 1).map((other) => [one, other] as const));

  it('differ from each other', () => {
    const near = pairs.map(([one, other]) => {
      const between = distance(oklab(linear(theme, one)), oklab(linear(theme, other)));
      return { pair: `${one} and ${other}`, between };
    });
    for (const { pair, between } of near) expect(between, pair).toBeGreaterThan(0.1);
  });

  it('differ clearly between successive versions', () => {
    const colour = (minor: number) => oklab(linear(theme, `series-${versionColour(`4.${minor}.0`) + 1}`));
    for (let minor = 0; minor < SERIES_COLOURS; minor += 1)
      expect(distance(colour(minor), colour(minor + 1)), `4.${minor} and the next`).toBeGreaterThan(0.15);
  });

  it('leave the names inside of bars readable', () => {
    const text = ofHex(theme === dark ? '0e1014' : 'ffffff');
    for (const name of names) expect(contrast(linear(theme, name), text), name).toBeGreaterThanOrEqual(4.5);
  });

  it('can be seen on the surfaces of charts', () => {
    for (const name of names)
      expect(contrast(linear(theme, name), linear(theme, 'surface')), name).toBeGreaterThanOrEqual(3);
  });
});
