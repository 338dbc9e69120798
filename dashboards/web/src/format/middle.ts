// Long paths without their middle. Pure.

export interface Parts {
  head: string;
  /** What is hidden, but copied. */
  middle: string;
  tail: string;
}

/** What is shown of an id. */
const ID = 24;

/** Hides folders in the middle of a path with more than `most` characters. Its first folder and its last ones are shown. */
export function shortPath(path: string, most = 56): Parts {
  const whole = { head: '', middle: '', tail: path };
  if (path.length <= most) return whole;
  // The first characters of an id are enough, such as that of a mapping in place of a file.
  if (!/[\\/.]/.test(path)) return { head: path.slice(0, ID), middle: path.slice(ID), tail: '' };
  // Each folder with the separator after it.
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
