import { describe, expect, it } from 'vitest';
import type { Evidence } from '../src/alerts/incident';
import { ruleOf } from '../src/alerts/evidence_text';
import { BLANK, toDocument, toForm, type Rule } from '../src/alerts/rule_form';
import { afterwards, sentence } from '../src/alerts/sentence';

const rule = (change: Partial<Rule>): Rule => ({ ...BLANK, name: 'Any', ...change });
const spans = { signal: 'spans', measure: 'p75_us', by: ['name'] };

describe('a rule as a sentence', () => {
  it('with a threshold', () => {
    const frozen = rule({
      metric: { signal: 'frame_windows', measure: 'frozen_share', by: ['app_id'] },
      condition: { kind: 'threshold', above: 0.005, recover: 0.003 },
      least_samples: 200,
      for_minutes: 10,
    });
    expect(sentence(frozen)).toBe(
      'Alert when, for any app, the share of frozen frames over the last hour is above 0.5 %, with at least 200 samples, for 10 minutes.',
    );
    expect(afterwards(frozen)).toEqual(['Resolve at 0.3 % or below.']);
  });

  it('with a lower threshold', () => {
    const frames = rule({
      metric: { signal: 'frame_windows', measure: 'fps', filters: { page: ['Cart'], mode: ['production', 'test'] } },
      condition: { kind: 'threshold', below: 50 },
      window_minutes: 1440,
    });
    expect(sentence(frames, { unit: 'per_second' })).toBe(
      'Alert when the number of frames per second on Cart where mode is production or test over the last day is below 50 per second.',
    );
    expect(afterwards(frames)).toEqual(['Resolve at the threshold or above.']);
  });

  it('with a regression', () => {
    const slower = rule({
      metric: spans,
      window_minutes: 10_080,
      least_samples: 200,
      for_minutes: 0,
      keep_minutes: 120,
      condition: { kind: 'regression', compare: 'same_age', effect: { least_relative: 0.05, least_absolute: 5_000 } },
    });
    expect(sentence(slower)).toBe(
      'Alert when, for any name, the p75 of spans in the latest version is at least 5 % and 5 ms slower than in the previous version at the same time after its release, over at most 7 days, with at least 200 samples on each side and p below 0.001.',
    );
    expect(afterwards(slower)).toEqual([
      'Resolve when the change is below 50 % of the minimum change.',
      'Resolve after 2 hours with too few samples.',
    ]);
  });

  it('with a regression of a measure where higher is better, without a test', () => {
    const fewer = rule({
      metric: { signal: 'page_loads', measure: 'completed_share', by: ['page'] },
      condition: {
        kind: 'regression',
        effect: { least_relative: 0.1, least_absolute: 0.005, significance: 1, recover: 0.25 },
      },
      least_samples: 1,
    });
    expect(sentence(fewer)).toBe(
      'Alert when, for any page, the share of page loads (completed) in the latest version is at least 10 % and 0.5 points lower than in the previous version on the same days, over at most 1 hour, with at least 1 sample on each side.',
    );
    expect(afterwards(fewer)).toEqual(['Resolve when the change is below 25 % of the minimum change.']);
  });

  it('with a comparison of weeks', () => {
    const traffic = rule({
      metric: { signal: 'traffic', measure: 'bytes_per_install', by: ['source', 'network'] },
      window_minutes: 1440,
      condition: { kind: 'last_week', effect: { least_relative: 0.3, least_absolute: 102_400 } },
    });
    expect(sentence(traffic)).toBe(
      'Alert when, for any source and network, the traffic per install over the last day is at least 30 % and 102 kB higher than at the same time last week, with p below 0.001.',
    );
  });

  it('with a rate of sessions', () => {
    const anrs = rule({
      metric: { signal: 'sessions', measure: 'anr_share', by: ['app_id'] },
      window_minutes: 1440,
      condition: { kind: 'last_week', effect: { least_relative: 0.3, least_absolute: 0.001 } },
    });
    expect(sentence(anrs)).toBe(
      'Alert when, for any app, the share of sessions with an ANR over the last day is at least 30 % and 0.1 points higher than at the same time last week, with p below 0.001.',
    );
  });

  it('with a chosen direction', () => {
    const starts = rule({
      metric: { signal: 'app_starts', measure: 'count' },
      condition: { kind: 'last_week', effect: { worse: 'down', least_relative: 0.5 } },
    });
    expect(sentence(starts)).toContain('the number of app starts over the last hour is at least 50 % lower than');
  });

  it('with absence', () => {
    const quiet = rule({
      metric: { signal: 'usage', measure: 'count', by: ['app_id'] },
      window_minutes: 30,
      for_minutes: 10,
      least_samples: 100,
      condition: { kind: 'absence' },
    });
    expect(sentence(quiet)).toBe(
      'Alert when no uploads arrive for 30 minutes for any app that sent data in the 7 days before, for 10 minutes.',
    );
    expect(sentence({ ...quiet, for_minutes: 0, metric: { signal: 'spans', measure: 'count' } })).toBe(
      'Alert when no spans arrive for 30 minutes, after spans arrived in the 7 days before.',
    );
    expect(afterwards(quiet)).toEqual(['Resolve when data arrives again.']);
  });

  it('with a new group', () => {
    const news = rule({
      metric: { signal: 'janks', measure: 'count', by: ['group_id', 'title'], filters: { not_a_cause: ['false'] } },
      window_minutes: 1440,
      least_samples: 10,
      condition: { kind: 'appearance', unseen_days: 28 },
    });
    expect(sentence(news)).toBe(
      'Alert when a new jank group occurs in janks where samples taken after the stall are excluded: seen in the last day, and not in the 28 days before, with at least 10 samples.',
    );
    expect(afterwards(news)).toEqual(['Resolve after 1 day, when the group is no longer new.']);
  });

  it('names the only span, and texts that values contain', () => {
    const checkout = rule({
      metric: { signal: 'spans', measure: 'p95_us', filters: { name: ['checkout'], 'contains.page': ['Cart'] } },
    });
    expect(sentence(checkout)).toBe(
      'Alert when the p95 of checkout where page contains Cart over the last hour is above 500 ms.',
    );
  });

  it('writes filters with the words of the screens', () => {
    const where = (filters: Record<string, string[]>) =>
      /where (.*) over the last hour/.exec(
        sentence(rule({ metric: { signal: 'janks', measure: 'count', filters } })),
      )?.[1];
    expect(where({ ended: ['killed'] })).toBe('the process was killed during the stall');
    expect(where({ kind: ['anr'], foreground: ['true'] })).toBe('kind is ANR and the app is in the foreground');
    expect(where({ kind: ['init', 'network'] })).toBe('kind is construction or request');
    expect(where({ duration: ['2s_5s', 'over_5s'] })).toBe('duration is 2–5 s (severe hang) or 5 s or longer (ANR)');
    expect(where({ strategy: ['5x300ms'], uptime: ['over_1h'] })).toBe(
      'strategy is 5 × over 300 ms and time since the launch is over 1 h',
    );
    expect(where({ 'attribute.ended': ['killed'], ended: ['other', ''] })).toBe(
      'ended is killed and end is other or (none)',
    );
  });

  it('states when no incident opens, and what devices send during an incident', () => {
    const quiet = rule({
      mute_windows: [
        { days: ['sat', 'sun'], from: '22:00', to: '06:00', utc_offset_minutes: 330 },
        { from: '01:00', to: '02:00' },
      ],
      action: { sampling: { spans: 0.5 } },
    });
    expect(afterwards(quiet)).toEqual([
      'Resolve at the threshold or below.',
      'Mute on Sat, Sun from 22:00 to 06:00 (UTC+5:30).',
      'Mute every day from 01:00 to 02:00 (UTC).',
      'While the rule fires, affected devices send 50 % of spans.',
    ]);
  });

  it('has an ellipsis for a missing number', () => {
    const form = { ...toForm(rule({ metric: spans }), 'us'), bound: '', leastSamples: '' };
    expect(sentence(toDocument(form, 'us'))).toContain('is above …, with at least … samples');
  });

  it('is about the group and the versions of an incident', () => {
    const evidence = {
      metric: spans,
      condition: { kind: 'regression', effect: { least_relative: 0.05 } },
      window_minutes: 1440,
      unit: 'us',
      group: { name: 'checkout', app_id: 'shop' },
      sides: { from: 0, to: 1, version: '4.12.0', base_version: '4.11.0' },
    } as unknown as Evidence;
    expect(ruleOf(evidence)).toBe(
      'Alert when the p75 of checkout where app is shop in 4.12.0 is at least 5 % slower than in 4.11.0 on the same days, over at most 1 day, with p below 0.001.',
    );
  });
});
