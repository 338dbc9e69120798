import { describe, expect, it } from 'vitest';
import {
  MIN_SESSIONS,
  byNumberAndBuild,
  compareVersions,
  noteFirstSeen,
  pickPair,
  type VersionUse,
} from '../src/versions/version_order';
import vectors from '../../../server/remote-config/src/version_order.json';

const use = (version: string, sessions = 100, app = 'shop'): VersionUse => ({ app, version, sessions });

describe('the order of versions', () => {
  it('compares numbers, not letters', () => {
    expect(['4.10.0', '4.9.0', '4.9', '10.0'].toSorted(compareVersions)).toEqual(['4.9', '4.9.0', '4.10.0', '10.0']);
  });

  it('puts candidates before their release, in the order of semver', () => {
    const order = [
      '1.0.0-alpha',
      '1.0.0-alpha.1',
      '1.0.0-alpha.beta',
      '1.0.0-beta.2',
      '1.0.0-beta.11',
      '1.0.0-rc.1',
      '1.0.0',
    ];
    expect(order.toReversed().toSorted(compareVersions)).toEqual(order);
  });

  it('is the order of the server', () => {
    for (const scheme of vectors.ascending)
      for (const [place, versions] of scheme.entries())
        for (const [otherPlace, others] of scheme.entries())
          for (const one of versions)
            for (const other of others)
              expect([one, other, Math.sign(byNumberAndBuild(one, other))]).toEqual([
                one,
                other,
                Math.sign(place - otherPlace),
              ]);
  });

  it('puts otherwise equal versions in the order in which they were first seen', () => {
    noteFirstSeen([
      { version: 'winter', firstSeen: 10 },
      { version: 'summer', firstSeen: 20 },
      { version: '1.4+f00ba42', firstSeen: 10 },
      { version: '1.4+1234abc', firstSeen: 30 },
      { version: '1.4+1234abc', firstSeen: 20 },
    ]);
    expect(['summer', '1.4+1234abc', '1.4+f00ba42', 'winter'].toSorted(compareVersions)).toEqual([
      'winter',
      'summer',
      '1.4+f00ba42',
      '1.4+1234abc',
    ]);
    noteFirstSeen([]);
  });

  it('puts texts that are not versions first', () => {
    expect(['1.0', 'nightly', 'debug'].toSorted(compareVersions)).toEqual(['debug', 'nightly', '1.0']);
  });
});

describe('the pair to compare', () => {
  it('is the latest version and the one before', () => {
    const pair = pickPair([use('4.9.0'), use('4.11.2'), use('4.10.0')]);
    expect(pair).toEqual({ app: 'shop', latest: '4.11.2', previous: '4.10.0', all: ['4.9.0', '4.10.0', '4.11.2'] });
  });

  it('takes builds for versions of their own', () => {
    const builds = [use('4.9.0 (40)'), use('4.10.0 (41)'), use('4.10.0 (9)')];
    expect(pickPair(builds)).toMatchObject({ latest: '4.10.0 (41)', previous: '4.10.0 (9)' });
    expect(pickPair([use('1.4.0+9'), use('1.4.0+10')])).toMatchObject({ latest: '1.4.0+10', previous: '1.4.0+9' });
  });

  it('skips barely used versions', () => {
    const pair = pickPair([use('1.0'), use('1.1', MIN_SESSIONS - 1), use('1.2'), use('2.0-dev', 1)]);
    expect(pair).toMatchObject({ latest: '1.2', previous: '1.0' });
  });

  it('takes barely used versions if there are no others', () => {
    expect(pickPair([use('1.0', 1), use('1.1', 2)])).toMatchObject({ latest: '1.1', previous: '1.0' });
  });

  it('never compares one app with another', () => {
    const uses = [use('4.1', 500), use('4.2', 500), use('9.0', 300, 'courier'), use('9.1', 300, 'courier')];
    expect(pickPair(uses)).toMatchObject({ app: 'shop', latest: '4.2', previous: '4.1' });
    expect(pickPair(uses, { apps: ['courier'] })).toMatchObject({ app: 'courier', latest: '9.1', previous: '9.0' });
    expect(pickPair(uses, { versions: ['9.1'] })).toMatchObject({ app: 'courier', latest: '9.1', previous: '9.0' });
  });

  it('is what the reader chose', () => {
    const uses = [use('1.0'), use('1.1'), use('1.2')];
    expect(pickPair(uses, { versions: ['1.1'] })).toMatchObject({ latest: '1.1', previous: '1.0' });
    expect(pickPair(uses, { base: '1.0' })).toMatchObject({ latest: '1.2', previous: '1.0' });
    expect(pickPair(uses, { versions: ['1.0'] })).toMatchObject({ latest: '1.0', previous: '' });
  });

  it('is none without data', () => {
    expect(pickPair([])).toBeNull();
  });
});
