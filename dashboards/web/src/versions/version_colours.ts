// The colour of a version: the same in every chart, with every filter and period. Pure.

import { SERIES_COLOURS } from '../components/series_style';

/** In this order, neighbours are easy to distinguish: blue, orange, teal, magenta, green, red, violet, ochre. */
const ORDER = [0, 1, 4, 3, 2, 6, 7, 5];

/**
 * The index of a version's colour. Neighbours have different colours: the next minor version has the next colour, and a patch has a later
 * colour.
 */
export function versionColour(version: string): number {
  const numbers = /^v?(\d+)(?:\.(\d+))?(?:\.(\d+))?/.exec(version.trim());
  if (!numbers) return ORDER[hash(version) % SERIES_COLOURS]!;
  const [major = 0, minor = 0, patch = 0] = numbers.slice(1).map((one) => Number(one ?? 0));
  const rest = version.slice(numbers[0].length);
  return ORDER[(major * 5 + minor + patch * 3 + (rest ? 2 + hash(rest) : 0)) % SERIES_COLOURS]!;
}

function hash(text: string): number {
  let sum = 0;
  for (const character of text) sum = (sum * 31 + character.codePointAt(0)!) % 9973;
  return sum;
}
