// Parts of a whole over time. Pure.

interface Line {
  label: string;
  values: (number | null)[];
}

/** Converts each value to a share of the total at its time. Keeps the largest lines, newest first, and merges all other lines into one. */
export function sharesOver(lines: Line[], shown: number, order: (a: string, b: string) => number): Line[] {
  const length = Math.max(0, ...lines.map((line) => line.values.length));
  const totals = Array.from({ length }, (_, at) => lines.reduce((sum, line) => sum + (line.values[at] ?? 0), 0));
  const size = (line: Line) => line.values.reduce<number>((sum, value) => sum + (value ?? 0), 0);
  const bySize = lines.toSorted((a, b) => size(b) - size(a));
  const share = (value: number | null | undefined, at: number) => (totals[at]! > 0 ? (value ?? 0) / totals[at]! : null);
  const kept = bySize
    .slice(0, shown)
    .toSorted((a, b) => order(b.label, a.label))
    .map((line) => ({ label: line.label, values: totals.map((_, at) => share(line.values[at], at)) }));
  const rest = bySize.slice(shown);
  if (rest.length === 0) return kept;
  const values = totals.map((_, at) =>
    share(
      rest.reduce((sum, line) => sum + (line.values[at] ?? 0), 0),
      at,
    ),
  );
  return [...kept, { label: rest.length === 1 ? rest[0]!.label : `${rest.length} others`, values }];
}
