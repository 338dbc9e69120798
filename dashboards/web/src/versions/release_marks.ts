// Selects the releases that a chart over time marks, and places their labels. Pure.

import type { Release } from './releases.svelte';

export interface Mark extends Release {
  reached: number;
  /** The bucket of the chart in which the version began to reach users. */
  bucket: number;
}

/** A mark with its place, in pixels. */
export interface Placed extends Mark {
  x: number;
  /** The label is to the left of the line. */
  isLeft: boolean;
}

/** The maximum number of marks in a chart. */
export const MOST_MARKS = 8;
/** The maximum length of a name. Longer names are cut. */
export const LONGEST = 16;
const CHARACTER_PX = 6.5;
const PADDING_PX = 10;

/** The releases within the buckets of a chart, newest first. `times` are the starts of the buckets, in seconds. */
export function marksIn(releases: Release[], times: number[], apps?: string[]): Mark[] {
  if (times.length < 2) return [];
  const end = times.at(-1)! + (times[1]! - times[0]!);
  return releases
    .flatMap((one) => {
      const { reached } = one;
      if (reached === null || reached < times[0]! || reached >= end || (apps && !apps.includes(one.app))) return [];
      return [{ ...one, reached, bucket: times.findLastIndex((time) => time <= reached) }];
    })
    .toSorted((a, b) => b.reached - a.reached);
}

/** Places the newest marks whose labels do not overlap, at most `MOST_MARKS`. */
export function placeMarks(
  marks: Mark[],
  xOf: (bucket: number) => number,
  [from, to]: [number, number],
): { placed: Placed[]; left: number } {
  const placed: Placed[] = [];
  const taken: [number, number][] = [];
  const isFree = (start: number, end: number) =>
    start >= from && end <= to && taken.every(([left, right]) => end <= left || start >= right);
  for (const mark of marks) {
    if (placed.length === MOST_MARKS) break;
    const x = xOf(mark.bucket);
    const width = Math.min(mark.version.length, LONGEST) * CHARACTER_PX + PADDING_PX;
    const isLeft = !isFree(x, x + width);
    if (isLeft && !isFree(x - width, x)) continue;
    placed.push({ ...mark, x, isLeft });
    taken.push(isLeft ? [x - width, x] : [x, x + width]);
  }
  return { placed, left: marks.length - placed.length };
}

/** The version as a label of limited length. */
export function shortVersion(version: string): string {
  return version.length > LONGEST ? `${version.slice(0, LONGEST - 1)}…` : version;
}

/** The versions that began to reach users in each bucket, as text. Empty for other buckets. */
export function releasedIn(marks: Mark[], bucket: number): string {
  return marks
    .filter((mark) => mark.bucket === bucket)
    .map(({ version }) => version)
    .join(', ');
}
