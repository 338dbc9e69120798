import { describe, expect, it } from 'vitest';
import { fromRows, toRows } from '../src/config/condition_rows';
import { configurationText, faultsAt, moved, toConfiguration, toDraft } from '../src/config/draft';
import { jsonFault, jsonLines, lineOf } from '../src/config/json_lines';

describe('conditions', () => {
  it.each([
    [{ percentage: { percent: 12.5 } }],
    [{ percentage: { percent: 5, salt: 'wave-1' } }],
    [{ all: [] }],
    [{ all: [{ os_name: ['android', 'ios'] }, { not: { app_version: '>=4.12, <5' } }] }],
    [{ build: { min: 1200 } }],
    [{ build: { min: 1200, max: 1300 } }],
    [{ build: { max: 1300 } }],
  ])('%j is rows, and the same again', (condition) => {
    expect(fromRows(toRows(condition)!)).toEqual(condition);
  });

  it('that no row can express stay JSON', () => {
    expect(toRows({ any: [{ os_name: ['ios'] }] })).toBeNull();
    expect(toRows({ all: [{ any: [] }] })).toBeNull();
    expect(toRows({ device_model: ['a,b'] })).toBeNull();
    expect(toRows('nonsense')).toBeNull();
  });

  it('reads a version without an operator as this version', () => {
    const typed = (text: string) => fromRows([{ field: 'app_version', not: false, text }]);
    expect(typed('4.12.0')).toEqual({ app_version: '=4.12.0' });
    expect(typed('>=4.12, <5')).toEqual({ app_version: '>=4.12, <5' });
    expect(typed('')).toEqual({ app_version: '' });
  });
});

describe('drafts', () => {
  const configuration = {
    base: { enabled: true },
    overrides: [
      { id: 'a', note: 'why', enabled: false, expires_at: '2026-12-01T00:00:00Z', when: { all: [] }, patch: { x: 1 } },
      { id: 'b', when: { any: [] }, patch: {} },
    ],
  };

  it('become the same configuration again', () => {
    expect(toConfiguration(toDraft(configuration))).toEqual({ configuration, faults: [] });
    expect(configurationText({})).toBe(configurationText({ base: {}, overrides: [] }));
  });

  it('show where a text is not JSON', () => {
    const draft = toDraft(configuration);
    draft.overrides[1]!.patchText = '{\n"x": }';
    expect(toConfiguration(draft).faults.map(({ path }) => path)).toEqual(['overrides[1].patch']);
  });

  it('keep faults at their place', () => {
    const fault = (path: string) => ({ path, code: '', message: '' });
    const faults = [fault('overrides[1].patch.x'), fault('overrides[10].id'), fault('base')];
    expect(faultsAt(faults, 'overrides[1]').map(({ path }) => path)).toEqual(['patch.x']);
    expect(faultsAt(faults, 'base').map(({ path }) => path)).toEqual(['']);
  });

  it('move within their list', () => {
    expect(moved(['a', 'b', 'c'], 2, 1)).toEqual(['a', 'c', 'b']);
    expect(moved(['a', 'b', 'c'], 0, -1)).toEqual(['a', 'b', 'c']);
  });
});

describe('lines of JSON', () => {
  const text = '{\n  "a": {\n    "b": [\n      1,\n      { "c": "}\\"" }\n    ]\n  },\n  "d": 2\n}';

  it('are found by path', () => {
    const lines = jsonLines(text);
    expect([lineOf('a.b[0]', lines), lineOf('a.b[1].c', lines), lineOf('d', lines), lineOf('', lines)]).toEqual([
      4, 5, 8, 1,
    ]);
    expect(lineOf('a.b[1].gone.deeper', lines)).toBe(5);
    expect(lineOf('nowhere', lines)).toBe(1);
  });

  it('are found in invalid JSON, too', () => {
    for (let end = 0; end < text.length; end += 1) jsonLines(text.slice(0, end));
    expect(jsonFault('{\n  "a": 1,\n}')?.line).toBe(3);
    expect(jsonFault(text)).toBeNull();
  });
});
