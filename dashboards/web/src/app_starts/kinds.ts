// The kinds of app starts with their thresholds, and the measures that the page shows. Pure.

export interface StartKind {
  id: string;
  label: string;
  /** The duration from which on Android vitals counts a start as slow. The measure `slow_start_share` uses this threshold. */
  slow: string;
}

export const KINDS: StartKind[] = [
  { id: 'cold', label: 'Cold', slow: '5 s' },
  { id: 'warm', label: 'Warm', slow: '2 s' },
  { id: 'hot', label: 'Hot', slow: '1.5 s' },
];

export interface StartMeasure {
  /** The value of the URL parameter. */
  id: string;
  label: string;
  /** The measure of the API. */
  name: string;
}

export const MEASURES: StartMeasure[] = [
  { id: 'p75', label: 'p75', name: 'p75_ms' },
  { id: 'p50', label: 'p50', name: 'p50_ms' },
  { id: 'p90', label: 'p90', name: 'p90_ms' },
  { id: 'p95', label: 'p95', name: 'p95_ms' },
  { id: 'slow', label: 'slow share', name: 'slow_start_share' },
];

export function kindOf(query: URLSearchParams): StartKind {
  return KINDS.find((one) => one.id === query.get('kind')) ?? KINDS[0]!;
}

export function measureOf(query: URLSearchParams): StartMeasure {
  return MEASURES.find((one) => one.id === query.get('measure')) ?? MEASURES[0]!;
}

/** Sorts rows whose first key is a kind, in the order of `KINDS`. Unknown kinds come last. */
export function inOrder<Row extends { keys: string[] }>(rows: Row[]): Row[] {
  const place = (row: Row) => {
    const at = KINDS.findIndex((one) => one.id === row.keys[0]);
    return at < 0 ? KINDS.length : at;
  };
  return rows.toSorted((a, b) => place(a) - place(b));
}
