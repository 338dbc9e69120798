// The order of a table's rows. Pure.

export interface Sort {
  column: string;
  descending: boolean;
}

type Value = string | number | null | undefined;

const texts = new Intl.Collator('en', { numeric: true, sensitivity: 'base' });

/** A sorted copy. Missing values come last in both directions. */
export function sortRows<Row>(
  rows: Row[],
  columns: { id: string; value: (row: Row) => Value }[],
  sort: Sort | undefined,
): Row[] {
  const column = columns.find((one) => one.id === sort?.column);
  if (!column || !sort) return rows;
  const sign = sort.descending ? -1 : 1;
  return rows.toSorted((left, right) => {
    const [a, b] = [column.value(left), column.value(right)];
    const missing = Number(isMissing(a)) - Number(isMissing(b));
    if (missing !== 0 || isMissing(a)) return missing;
    if (typeof a === 'number' && typeof b === 'number') return sign * (a - b);
    return sign * texts.compare(String(a), String(b));
  });
}

function isMissing(value: Value): boolean {
  return value === null || value === undefined || value === '';
}
