// The difference of two texts, line by line. Pure.

export interface DiffLine {
  kind: 'same' | 'added' | 'removed';
  text: string;
  /** Line numbers, from 1, in the text before and after. */
  before?: number;
  after?: number;
}

/** Above this many cells, a comparison would take seconds, so the whole middle counts as replaced. */
const MOST_CELLS = 4_000_000;

export function lineDiff(before: string, after: string): DiffLine[] {
  const a = before.split('\n');
  const b = after.split('\n');
  let start = 0;
  while (start < a.length && start < b.length && a[start] === b[start]) start += 1;
  let end = 0;
  while (end < a.length - start && end < b.length - start && a[a.length - 1 - end] === b[b.length - 1 - end]) end += 1;
  const kinds: DiffLine['kind'][] = [
    ...Array<'same'>(start).fill('same'),
    ...middle(a.slice(start, a.length - end), b.slice(start, b.length - end)),
    ...Array<'same'>(end).fill('same'),
  ];
  let i = 0;
  let j = 0;
  return kinds.map((kind) => {
    if (kind === 'removed') return { kind, text: a[i]!, before: ++i };
    if (kind === 'added') return { kind, text: b[j]!, after: ++j };
    return { kind, text: a[i]!, before: ++i, after: ++j };
  });
}

/** The longest common subsequence, from a table of lengths for all pairs of suffixes. */
function middle(a: string[], b: string[]): DiffLine['kind'][] {
  if (a.length * b.length > MOST_CELLS) {
    return [...Array<'removed'>(a.length).fill('removed'), ...Array<'added'>(b.length).fill('added')];
  }
  const width = b.length + 1;
  const rest = new Uint32Array((a.length + 1) * width);
  for (let i = a.length - 1; i >= 0; i -= 1) {
    for (let j = b.length - 1; j >= 0; j -= 1) {
      const at = i * width + j;
      rest[at] = a[i] === b[j] ? rest[at + width + 1]! + 1 : Math.max(rest[at + width]!, rest[at + 1]!);
    }
  }
  const kinds: DiffLine['kind'][] = [];
  let i = 0;
  let j = 0;
  while (i < a.length && j < b.length) {
    const at = i * width + j;
    if (a[i] === b[j]) {
      kinds.push('same');
      i += 1;
      j += 1;
    } else if (rest[at + width]! >= rest[at + 1]!) {
      kinds.push('removed');
      i += 1;
    } else {
      kinds.push('added');
      j += 1;
    }
  }
  kinds.push(...Array<'removed'>(a.length - i).fill('removed'), ...Array<'added'>(b.length - j).fill('added'));
  return kinds;
}

/** The changed lines with some lines of context. `null` marks omitted lines. */
export function withContext(lines: DiffLine[], around = 3): (DiffLine | null)[] {
  const near = new Uint8Array(lines.length);
  lines.forEach((line, index) => {
    if (line.kind === 'same') return;
    for (let k = Math.max(0, index - around); k <= Math.min(lines.length - 1, index + around); k += 1) near[k] = 1;
  });
  const shown: (DiffLine | null)[] = [];
  lines.forEach((line, index) => {
    if (near[index]) shown.push(line);
    else if (shown.at(-1) !== null) shown.push(null);
  });
  return shown;
}
