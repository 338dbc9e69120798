// A table of measures for a report, with both compared versions. Pure.

import type { TableAnswer, TableRow } from '../api/query';
import { valueOf } from '../api/query';
import { measureName } from '../format/measure_names';
import { format } from '../format/units';
import { changeOf, changeText, type Evidence } from '../versions/change';

/** Returns a row for each measure. With a base, the row also has the value of the base and the change, judged by its evidence. */
export function measureRows(
  answer: TableAnswer,
  row: TableRow,
  labels: { now: string; base: string },
  evidence?: (measure: string) => Evidence,
): { head: string[]; rows: string[][] } {
  const hasBase = Boolean(row.base);
  const rows = answer.measures.map(({ name, unit, better }) => {
    const value = valueOf(answer, row, name);
    const base = valueOf(answer, row, name, 'base');
    const change = changeText(changeOf(value, base, better, unit, evidence?.(name)));
    return [measureName(name), format(value, unit), ...(hasBase ? [format(base, unit), change] : [])];
  });
  return { head: ['Measure', labels.now, ...(hasBase ? [labels.base, 'Change'] : [])], rows };
}
