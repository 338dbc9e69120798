// The styles of series in charts: a colour, which the caller may set, and dashes by index, because colour alone is not enough. Pure.

export const SERIES_COLOURS = 8;

/** A series of a chart, such as a version. */
export interface Styled {
  label: string;
  /** The index of the colour, for a series with the same colour in every chart. Default: the index of the series. */
  colour?: number;
}

const DASHES = [[], [7, 4], [2, 3], [9, 3, 2, 3], [14, 4], [5, 2, 2, 2, 2, 2], [3, 6], [12, 3, 3, 3]];

/** Counts from 1, as in `--series-1`. */
export const colourOf = (one: Styled, place: number) => ((one.colour ?? place) % SERIES_COLOURS) + 1;
export const cssColour = (one: Styled, place: number) => `var(--series-${colourOf(one, place)})`;
/** The dashes of a line, in pixels. Empty: a solid line. */
export const dashOf = (place: number): number[] => DASHES[place % DASHES.length]!;
