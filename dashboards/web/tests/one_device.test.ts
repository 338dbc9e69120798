import { describe, expect, it } from 'vitest';
import type { Schemas } from '../src/api/client';
import {
  attributesOf,
  collectionText,
  overrideText,
  parameterOf,
  questionOf,
  revisionText,
  valueRows,
} from '../src/config/device_text';
import { ofDevice } from '../src/navigation/links';

const INSTALL = '5c0c7e0e-6c6b-4a3e-8a0e-0f6f8d3b2a11';
type Answer = Schemas['DeviceConfiguration'];
const answer = {
  revision: 14,
  current_revision: 14,
  attributes: { install_id: INSTALL, os_name: 'android', build: 41200, network: '' },
  last_report: { received_at: 0, revision: 12, filled: ['os_name'] },
  document: { enabled: true, sampling: { session_rate: 1 } },
  keys: [],
  overrides: [],
} as unknown as Answer;
const override: Schemas['ExplainedOverride'] = {
  ...{ id: 'beta', note: '', outcome: 'unmet', matches: false, unmet: [], unmet_parts: 0 },
  ...{ expires_at: null, keys: 0, overridden_keys: 0, overridden: [] },
};
const part: Schemas['UnmetPart'] = {
  ...{ condition: 'app_version', negated: false, device: '4.11.0', wanted: ['>=4.12'], left_out: 0, percentage: null },
};
const because = (...unmet: Schemas['UnmetPart'][]) => overrideText({ ...override, unmet, unmet_parts: unmet.length });

describe('the question about one device', () => {
  it('comes from the URL, and a link to an install asks it', () => {
    const query = new URLSearchParams(ofDevice(INSTALL));
    expect(questionOf(query)).toEqual({ attributes: { install_id: INSTALL } });
    query.set(parameterOf('build'), ' 41200 ');
    query.set(parameterOf('revision'), '3');
    expect(questionOf(query)).toEqual({ attributes: { build: 41200, install_id: INSTALL }, revision: 3 });
  });

  it('is missing if nothing is given, and keeps what is not a number for the server', () => {
    expect(questionOf(new URLSearchParams('os_name=android&device.os_name=+'))).toBeNull();
    expect(questionOf(new URLSearchParams('device.build=many'))).toEqual({ attributes: { build: 'many' } });
  });
});

describe('the revision of a device', () => {
  const text = (changes: Partial<Answer>) => revisionText({ ...answer, ...changes }).join(' ');

  it('is the one that it has, and the one that it gets', () => {
    expect(text({})).toContain('had revision 12. It gets revision 14 with its next fetch.');
    expect(text({ last_report: { ...answer.last_report!, revision: 14 } })).toContain(
      'had revision 14. That is the current revision.',
    );
    expect(text({ last_report: { ...answer.last_report!, revision: 0 } })).toContain('had no revision. It gets');
  });

  it('is unknown if the install sent nothing', () => {
    expect(text({ last_report: null })).toContain('No batch of this install arrived');
    expect(text({ last_report: null, attributes: {} })).toBe('A device with these attributes gets revision 14.');
  });

  it('may be an earlier one', () => {
    expect(text({ revision: 0 })).toBe('Shows the defaults. Devices get revision 14.');
  });

  it('may be a draft', () => {
    expect(revisionText(answer, true)).toEqual(['Shows the draft. Devices get revision 14.']);
  });
});

describe('the answer for a device', () => {
  it('lists the known attributes, the install first', () => {
    expect(attributesOf(answer)).toEqual([
      { label: 'Install', value: INSTALL, reported: false },
      { label: 'Build', value: '41200', reported: false },
      { label: 'OS', value: 'android', reported: true },
    ]);
  });

  it('shows each value with its labels, unit and source', () => {
    const keys: Schemas['ExplainedKey'][] = [
      { key: 'sampling.janks', value: 0.25, source: 'override', set_by: 'beta' },
      { key: 'poll_interval_s', value: 900, source: 'default', set_by: null },
      { key: 'monitors.fps', value: { interval_ms: 1000 }, source: 'base', set_by: null },
      { key: 'monitors.cpu', value: null, source: 'base', set_by: null },
      { key: 'toggles.cart.new', value: { share: 1 }, source: 'base', set_by: null },
    ];
    expect(valueRows({ ...answer, keys }).map(({ place, value, from }) => [place, value, from])).toEqual([
      ['Sampling › Janks', '25 %', 'beta'],
      ['Poll interval', '900 s', 'Default'],
      ['Monitors › fps', '1,000 ms', 'Base'],
      ['Monitors › cpu', 'not set', 'Base'],
      ['Toggles › cart.new', '{"share":1}', 'Base'],
    ]);
  });

  it('says if little or nothing is collected', () => {
    const document = (enabled: boolean, rate: number) =>
      ({ ...answer, document: { enabled, sampling: { session_rate: rate } } }) as unknown as Answer;
    expect(collectionText(document(true, 1))).toBe('');
    expect(collectionText(document(false, 1))).toContain('Collection is off');
    expect(collectionText(document(true, 0.25))).toContain('in 25 % of its sessions');
  });
});

describe('the reason of an override', () => {
  it('names the attribute that does not fit', () => {
    expect(because(part)).toBe('App version is 4.11.0. Wanted: >=4.12.');
    expect(because({ ...part, device: null })).toBe('App version is unknown. Wanted: >=4.12.');
    const models = { ...part, condition: 'os_name' as const, device: 'android', wanted: ['android', 'ios'] };
    expect(because({ ...models, negated: true })).toBe('OS is android. Wanted: not android or ios.');
    expect(because({ ...models, left_out: 1200 })).toContain('android, ios or 1,200 more');
    expect(overrideText({ ...override, unmet: [part], unmet_parts: 3 })).toContain('2 more conditions are not met.');
  });

  it('names the place of the install in a percentage', () => {
    const share = (install: number | null, negated = false) =>
      because({ ...part, condition: 'percentage', negated, percentage: { below: 10, install } });
    expect(share(37.4)).toBe('The install is at 37.4 %, and the override reaches the first 10 %.');
    expect(share(4.002, true)).toBe('The install is at 4.002 %, and the override leaves out the first 10 %.');
    expect(share(null)).toContain('The install is unknown');
  });

  it('is that it is disabled, ended, or overridden later', () => {
    const disabled = { ...override, outcome: 'disabled' as const, matches: true };
    expect(overrideText(disabled)).toBe('It is disabled. The device meets its condition.');
    const expired = { ...override, outcome: 'expired' as const, expires_at: 30 * 86_400e6 };
    expect(overrideText({ ...expired, unmet: [part], unmet_parts: 1 })).toMatch(/^It ended on .* 1970, .*4\.11\.0/);
    const applied = { ...override, outcome: 'applied' as const, matches: true, keys: 2, overridden_keys: 2 };
    expect(overrideText({ ...applied, overridden: [{ key: 'sampling.janks', by: 'late' }] })).toBe(
      'Sets 2 values. Overridden later: Sampling › Janks (by late), and 1 more.',
    );
    expect(overrideText({ ...applied, keys: 1, overridden_keys: 0 })).toBe('Sets 1 value.');
  });
});
