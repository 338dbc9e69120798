// Columns of a table for the measures of an answer, each beside its base when there is one. Pure.

import type { TableAnswer, TableRow } from '../api/query';
import type { Column } from '../components/Table.svelte';
import { measureName } from '../format/measure_names';
import { ENOUGH } from '../versions/enough';

export function measureColumns<Row>(
  answer: TableAnswer,
  measures: string[],
  /** The row of the answer behind a row of the table. */
  rowOf: (row: Row) => TableRow,
  more: Record<string, Partial<Column<Row>>> = {},
  /** Installs on either side from which on a change is shown, where they are measured. */
  enough: number = ENOUGH.measured,
): Column<Row>[] {
  const compared = answer.rows.some((row) => row.base);
  const installs = answer.measures.findIndex((one) => one.name === 'installs');
  const isEnough = ({ values, base }: TableRow) =>
    installs < 0 || Math.min(values[installs] ?? 0, base?.[installs] ?? 0) >= enough;
  return measures.flatMap((name) => {
    const place = answer.measures.findIndex((one) => one.name === name);
    const measure = answer.measures[place];
    if (!measure) return [];
    const column: Column<Row> = {
      id: name,
      label: measureName(name),
      unit: measure.unit === 'per_second' ? 'fps' : measure.unit,
      value: (row) => rowOf(row).values[place],
      better: measure.better,
    };
    if (compared && measure.better !== 'none')
      column.base = (row) => (isEnough(rowOf(row)) ? rowOf(row).base?.[place] : null);
    return [{ ...column, ...more[name] }];
  });
}

/** For tables whose rows are those of the answer. */
export function asIs(row: TableRow): TableRow {
  return row;
}
