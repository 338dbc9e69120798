import { describe, expect, it } from 'vitest';
import { namedIn, textNaming } from '../src/config/condition_rows';
import { countOwn, faultAt, hasField, merged, pathText, withValue } from '../src/config/document';
import { expectedText, isArriving, othersText } from '../src/config/rollout_text';
import {
  BASE,
  defaultsOf,
  faultOf,
  fieldsOf,
  kindOf,
  meaningOf,
  rangeOf,
  shownText,
  typedText,
  typedValue,
  type Schema,
} from '../src/config/schema';

const field = (...path: string[]) => path.reduce<Schema>((schema, name) => schema.properties![name]!, BASE);
const janks = field('sampling', 'janks');
const anr = field('jank', 'anr_ms');

describe('fields', () => {
  it('come from the schema of the server, each with a description', () => {
    const kinds = new Set<string>();
    const visit = (schema: Schema, path: string) => {
      for (const [name, one] of fieldsOf(schema)) {
        expect(meaningOf(one), `${path}.${name}`).not.toBe('');
        kinds.add(kindOf(one));
        if (one.properties) visit(one, `${path}.${name}`);
        if (one.items?.properties) visit(one.items, `${path}.${name}[]`);
      }
    };
    visit(BASE, '');
    expect([...kinds].sort()).toEqual(['choice', 'flag', 'map', 'number', 'other', 'rows', 'section', 'text', 'texts']);
    expect(fieldsOf(BASE)[0]![0]).toBe('poll_interval_s');
  });

  it('show limits and defaults with their units', () => {
    expect([rangeOf(janks), shownText(janks.default, janks)]).toEqual(['0 to 100 %', '100 %']);
    expect([rangeOf(anr), shownText(anr.default, anr)]).toEqual(['1,000 to 60,000 ms', '5,000 ms']);
    expect(meaningOf(anr)).toBe('The minimum duration of an ANR.');
    expect((defaultsOf(BASE).upload as { interval_s: number }).interval_s).toBe(60);
  });

  it.each([
    ['7', 0.07],
    ['0.1', 0.001],
    ['12.5', 0.125],
    ['100', 1],
    ['', undefined],
    ['many', 'many'],
  ])('a share typed as %j is %j', (text, value) => {
    expect(typedValue(text, janks)).toBe(value);
    if (typeof value === 'number') expect(typedText(value, janks)).toBe(text);
  });

  it('name invalid values', () => {
    expect(faultOf(1, janks)).toBeUndefined();
    expect(faultOf(undefined, janks)).toBeUndefined();
    expect(faultOf(7, janks)).toBe('Enter a number from 0 to 100 %.');
    expect(faultOf(999, anr)).toBe('Enter a whole number from 1,000 to 60,000 ms.');
    expect(faultOf(5000.5, anr)).toBeDefined();
    expect(faultOf('many', anr)).toBeDefined();
  });
});

describe('documents', () => {
  it('lose an emptied value and the sections that become empty', () => {
    const document = { sampling: { spans: { default: 0.5 } }, upload: { wifi_only: true } };
    expect(withValue(document, ['sampling', 'spans', 'default'], undefined)).toEqual({ upload: { wifi_only: true } });
    expect(withValue({ enabled: false }, ['enabled'], undefined)).toBeUndefined();
    expect(document.sampling.spans.default).toBe(0.5);
  });

  it('keep rows of lists whose values are emptied', () => {
    const path = ['jank', 'strategies', 0, 'count'];
    const document = withValue({}, path, 3);
    expect(document).toEqual({ jank: { strategies: [{ count: 3 }] } });
    expect(withValue(document, path, undefined)).toEqual({ jank: { strategies: [{}] } });
    expect(pathText(path)).toBe('jank.strategies[0].count');
  });

  it('merge like a patch on the server', () => {
    expect(merged({ a: { b: 1, c: 2 }, d: [1] }, { a: { b: null, e: 3 }, d: [2] })).toEqual({
      a: { c: 2, e: 3 },
      d: [2],
    });
  });

  it('know which faults have a field', () => {
    const fault = (path: string) => [{ path, code: '', message: path }];
    expect(faultAt(fault('tracing.allow[3]'), ['tracing', 'allow'])).toBe('tracing.allow[3]');
    expect(faultAt(fault('sampling.janks'), ['sampling'])).toBeUndefined();
    expect(hasField('jank.strategies[1].period_ms', BASE)).toBe(true);
    expect(hasField('monitors.fps.interval_ms', BASE)).toBe(true);
    expect(hasField('sampling.typo', BASE)).toBe(false);
    expect(hasField('toggles.mine', BASE)).toBe(false);
    expect(hasField('', BASE)).toBe(false);
  });

  it('count their own values', () => {
    expect(countOwn({ default: 0.5, overrides: [] }, field('sampling', 'spans'))).toBe(2);
    expect(countOwn(undefined, janks)).toBe(0);
  });
});

describe('known values of a condition', () => {
  it('become a list or one exact version', () => {
    expect(textNaming('os_name', ['android', 'ios'])).toBe('android, ios');
    expect(textNaming('app_version', ['4.9.0', '4.10.0'])).toBe('=4.10.0');
    expect(namedIn({ field: 'app_version', not: false, text: '=4.10.0' })).toEqual(['4.10.0']);
    expect(namedIn({ field: 'app_version', not: false, text: '>=4' })).toEqual([]);
    expect(namedIn({ field: 'device_class', not: false, text: 'low, mid' })).toEqual(['low', 'mid']);
  });
});

describe('a rollout', () => {
  const rollout = {
    revision: 4,
    saved_at: 0,
    installs: 200,
    sampled: 200,
    running: 190,
    waiting: 4,
    concerned: 50,
    concerned_running: 48,
    poll_interval_s: 900,
    upload_interval_s: 60,
    announced: true,
    revisions: [],
  };

  it('continues until nearly all installs have the revision', () => {
    expect(isArriving(rollout)).toBe(true);
    expect(isArriving({ ...rollout, running: 198 })).toBe(false);
    expect(isArriving({ ...rollout, revision: 0 })).toBe(false);
  });

  it('names the installs without the revision, if there are any', () => {
    expect(othersText(rollout)).toBe(
      '4 sent data since the revision was saved and still run an earlier revision. 6 sent nothing since the save, so their revision is unknown.',
    );
    expect(othersText({ ...rollout, running: 199, waiting: 0 })).toBe(
      '1 sent nothing since the save, so its revision is unknown.',
    );
    expect(othersText({ ...rollout, running: 200, waiting: 0 })).toBe('');
  });

  it('needs a receipt and an upload, or a poll if receipts cannot announce it', () => {
    expect(expectedText(rollout)).toContain('expect about 2 min');
    expect(expectedText({ ...rollout, announced: false })).toContain('next poll');
  });
});
