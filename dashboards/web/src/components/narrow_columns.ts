// Selects the columns that a table keeps on a narrow screen: the first one and the main number. Pure.

interface Column {
  id: string;
  label: string;
  unit?: string;
  bar?: boolean;
  base?: unknown;
}

/** The columns to keep. The others fold under their row. */
export function mainColumns<C extends Column>(columns: C[], sortedBy?: string): C[] {
  if (columns.length < 3) return columns;
  const [first, ...others] = columns;
  const numbers = others.filter((column) => column.unit !== undefined);
  const deciding =
    numbers.find((column) => column.id === sortedBy) ??
    numbers.find((column) => column.id === 'change') ??
    numbers.find((column) => column.bar) ??
    numbers.find((column) => column.base !== undefined) ??
    numbers[0] ??
    others.find((column) => column.label !== '');
  return columns.filter((column) => column === first || column === deciding);
}
