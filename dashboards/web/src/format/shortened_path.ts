// Hides the middle of long paths. Pure.

export interface Parts {
  head: string;
  /** Hidden on the screen, but included in copies. */
  middle: string;
  tail: string;
}

/** How many characters of an id are shown. */
const ID = 24;

/** Hides folders in the middle of a path with more than `most` characters. The first folder and the last folders stay visible. */
export function shortPath(path: string, most = 56): Parts {
  const whole = { head: '', middle: '', tail: path };
  if (path.length <= most) return whole;
  // Some frames have an id instead of a file, such as the id of a mapping. Shows only the first characters of such an id.
  if (!/[\\/.]/.test(path)) return { head: path.slice(0, ID), middle: path.slice(ID), tail: '' };
  // Splits the path into folders, each with its separator.
  const parts = path.split(/(?<=[\\/])/);
  const first = /^[\\/]/.test(path) ? 2 : 1;
  const head = parts.slice(0, first).join('');
  let start = parts.length - 1;
  let length = head.length + parts[start]!.length;
  while (start > first && length + parts[start - 1]!.length < most) {
    start -= 1;
    length += parts[start]!.length;
  }
  if (start <= first) return whole;
  const middle = parts.slice(first, start).join('');
  return { head, middle: middle.slice(0, -1), tail: middle.slice(-1) + parts.slice(start).join('') };
}
