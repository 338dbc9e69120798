import { describe, expect, it } from 'vitest';
import { sortRows } from '../src/components/sorting';
import { csv } from '../src/format/csv';
import { lineDiff, withContext } from '../src/format/line_diff';
import { firstUnfinished } from '../src/components/unfinished';
import { dayName, period } from '../src/format/times';
import { ago, format } from '../src/format/units';

describe('numbers', () => {
  it.each([
    [null, 'us', '–'],
    [0, 'us', '0 ms'],
    [412, 'us', '412 µs'],
    [41_250, 'us', '41.3 ms'],
    [61_000, 'ms', '1.02 min'],
    [0.0312, 'share', '3.12 %'],
    [1_234_567, 'bytes', '1.23 MB'],
    [999, 'count', '999'],
    [9_999, 'count', '9,999'],
    [12_345, 'count', '12.3 k'],
    [59.94, 'fps', '59.9 fps'],
  ])('%s %s is %s', (value, unit, text) => expect(format(value, unit)).toBe(text));

  it('show how long ago a time was', () => {
    const now = new Date('2026-11-21T12:00:00Z');
    expect(ago(new Date('2026-11-21T11:55:00Z'), now)).toBe('5 minutes ago');
    expect(ago(new Date('2026-12-21T12:00:00Z'), now)).toBe('in 30 days');
  });
});

describe('tables', () => {
  it('sort missing values last', () => {
    const columns = [{ id: 'v', value: (row: number | null) => row }];
    expect(sortRows([2, null, 10, 1], columns, { column: 'v', descending: true })).toEqual([10, 2, 1, null]);
    expect(sortRows([2, null, 10, 1], columns, { column: 'v', descending: false })).toEqual([1, 2, 10, null]);
  });

  it('become files in which no spreadsheet runs a formula', () => {
    expect(
      csv([
        ['a', 'b'],
        ['=1+1', 'say "hi", you'],
        [-3, null],
        ['\u200b\u00a0＝1', ' @x'],
        ['a-b', 'c'],
      ]),
    ).toBe('a,b\r\n\'=1+1,"say ""hi"", you"\r\n-3,\r\n\'\u200b\u00a0＝1,\' @x\r\na-b,c\r\n');
  });
});

describe('differences', () => {
  const signs = (before: string, after: string) =>
    lineDiff(before, after).map(({ kind, text }) => ({ same: ' ', added: '+', removed: '-' })[kind] + text);

  it('are line by line', () => {
    expect(signs('a\nb\nc', 'a\nx\nc\nd')).toEqual([' a', '-b', '+x', ' c', '+d']);
    expect(signs('', '')).toEqual([' ']);
  });

  it('leave out lines far from any change', () => {
    const before = Array.from({ length: 20 }, (_, index) => `line ${index}`).join('\n');
    const shown = withContext(lineDiff(before, before.replace('line 10', 'other')), 1);
    expect(shown.map((line) => line?.text ?? '…')).toEqual(['…', 'line 9', 'line 10', 'other', 'line 11', '…']);
  });
});

describe('formats', () => {
  const sources = import.meta.glob<string>('../src/**/*.{svelte,ts}', {
    query: '?raw',
    import: 'default',
    eager: true,
  });
  /** The lines outside `format/` that match. */
  const linesWith = (wanted: RegExp) =>
    Object.entries(sources)
      .filter(([path]) => !path.includes('/src/format/'))
      .flatMap(([path, text]) => text.split('\n').flatMap((line) => (wanted.test(line) ? [`${path}: ${line}`] : [])));

  it('are made in one place', () => {
    expect(linesWith(/\.to(Fixed|Precision|Exponential|Locale\w*String)\(|Intl\.(?!Collator)/)).toEqual([]);
  });

  it('of times follow the chosen time zone everywhere', () => {
    // Fields of a date are those of the zone of the browser, or of UTC.
    const fields = /\.[gs]et(UTC)?(FullYear|Month|Date|Day|Hours|Minutes|Seconds|Milliseconds|TimezoneOffset)\(/;
    const texts = /\.to(Date|Time|UTC|GMT)String\(|String\((new )?Date\(|\.toJSON\(/;
    // A part of such a text is for people. The whole text is for the API.
    const parts = /toISOString\(\)\s*\.(slice|substring|substr|split|replace\w*|match)\(|\.toISOString\(\)\[/;
    // Markup may have it in an attribute only.
    const markup = /(?<!datetime=)\{[^{}=]*\.toISOString\(\)\}/;
    // A text without an offset is a time in the zone of the browser.
    const parsed = /new Date\(`[^`]*T\d\d:\d\d(:\d\d)?`\)|new Date\((text|from|to|until|starts|since)\)/;
    for (const banned of [fields, texts, parts, markup, parsed]) expect(linesWith(banned)).toEqual([]);
  });

  it('of times in tables also apply to their files', () => {
    const untyped = linesWith(/value: \(\w+\) => \w+\.(\w+_at|first_seen|last_seen|start|end),? /);
    expect(untyped.filter((line) => !/time: true|unit: /.test(line))).toEqual([]);
  });

  it('of days are not the notation of the API', () => {
    expect(dayName('2026-11-06')).toBe('6 Nov');
    expect(dayName('(none)')).toBe('(none)');
    // Texts of the screen. Addresses, parameters and names of files keep the notation.
    expect(linesWith(/\b(of|on|for|since|until) \{day\}/)).toEqual([]);
    expect(linesWith(/label: 'Day'/).filter((line) => !line.includes('cell: '))).toEqual([]);
  });

  it('of periods have days or hours', () => {
    expect(period('2026-11-18T00:00:00Z', '2026-11-26T00:00:00Z')).toBe('18 Nov – 25 Nov');
    expect(period('2026-11-18T00:00:00Z', '2026-11-19T00:00:00Z')).toBe('18 Nov');
    expect(period('2026-11-18T10:00:00Z', '2026-11-18T12:00:00Z')).toMatch(/^18 Nov, \d\d:00 – 18 Nov, \d\d:00$/);
  });
});

describe('charts', () => {
  it('know the unfinished buckets', () => {
    expect(firstUnfinished([0, 10, 20], 25)).toBe(2);
    expect(firstUnfinished([0, 10, 20], 30)).toBe(3);
    expect(firstUnfinished([0, 10, 20], 5)).toBe(0);
    expect(firstUnfinished([], 5)).toBe(0);
  });
});
