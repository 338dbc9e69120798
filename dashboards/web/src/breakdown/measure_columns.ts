// Table columns for the measures of an answer. With a base, each column also shows the value of the base. Pure.

import type { TableAnswer, TableRow } from '../api/query';
import { INSTALLS_OF_ACTIVE } from '../format/affected';
import type { Column } from '../components/Table.svelte';
import { measureName } from '../format/measure_names';
import type { ChangeTests } from '../versions/change_tests.svelte';
import { isFew } from '../versions/minimum_samples';
import type { ActiveInstalls } from './active_installs.svelte';

export function measureColumns<Row>(
  answer: TableAnswer,
  measures: string[],
  /** Returns the row of the answer that belongs to a row of the table. */
  rowOf: (row: Row) => TableRow,
  more: Record<string, Partial<Column<Row>>> = {},
  tests?: ChangeTests,
  /** Shows the share of active installs beside each number of installs. */
  active?: ActiveInstalls,
): Column<Row>[] {
  const compared = answer.rows.some((row) => row.base);
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
    if (compared && measure.better !== 'none') {
      column.base = (row) => rowOf(row).base?.[place];
      column.evidence = (row) => ({
        few: isFew(answer, rowOf(row)),
        ...(tests && { significant: tests.of(rowOf(row).keys, name) }),
      });
    }
    if (name === 'installs' && active)
      Object.assign(
        column,
        ofActive(active, (row: Row) => rowOf(row).keys),
      );
    return [{ ...column, ...more[name] }];
  });
}

/** Adds the share of active installs to a column that counts installs. */
export function ofActive<Row>(active: ActiveInstalls, keysOf: (row: Row) => string[]): Partial<Column<Row>> {
  if (!active.isKnown) return { hint: active.hint };
  return { ...INSTALLS_OF_ACTIVE, active: (row) => active.of(keysOf(row)), basis: active.basis };
}

/** The `rowOf` of tables that show the rows of the answer unchanged. */
export function asIs(row: TableRow): TableRow {
  return row;
}
