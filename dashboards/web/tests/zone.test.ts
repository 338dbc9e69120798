import { afterEach, describe, expect, it } from 'vitest';
import { timeTicks } from '../src/components/time_ticks';
import { days } from '../src/alerts/firing_periods';
import { seenFacts } from '../src/evidence/fixed_time';
import { clockMillis, dateTime, exactTime, period, shortTime, timeInFile, utcDate } from '../src/format/times';
import {
  browserZone,
  endOfDay,
  fromInput,
  offsetText,
  toInput,
  zone,
  zonedTime,
  zoneText,
} from '../src/format/zone.svelte';
import { readFilters } from '../src/navigation/filters';

const AT = new Date('2026-11-21T23:05:09.123Z');
afterEach(() => zone.show(browserZone));

describe('the chosen time zone', () => {
  it('applies to every text', () => {
    zone.show('Europe/Berlin');
    expect(dateTime(AT)).toBe('22 Nov 2026, 00:05');
    expect(shortTime(AT)).toBe('22 Nov, 00:05');
    expect(exactTime(AT)).toContain('22 November 2026 at 00:05:09 CET');
    expect(clockMillis(AT)).toBe('00:05:09.123');
    zone.show('UTC');
    expect(dateTime(AT)).toBe('21 Nov 2026, 23:05');
  });

  it('has a name and an offset, which changes with the season', () => {
    expect(zoneText(new Date('2026-07-01T00:00:00Z'), 'Europe/Berlin')).toBe('UTC+2, Europe/Berlin');
    expect(zoneText(new Date('2026-12-01T00:00:00Z'), 'Europe/Berlin')).toBe('UTC+1, Europe/Berlin');
    expect(zoneText(AT, 'America/St_Johns')).toBe('UTC−3:30, America/St_Johns');
    expect(zoneText(AT, 'UTC')).toBe('UTC');
    expect(offsetText(-90)).toBe('UTC−1:30');
  });

  it('applies to the times that people type', () => {
    zone.show('America/New_York');
    expect(toInput(AT)).toBe('2026-11-21T18:05');
    expect(fromInput('2026-11-21T18:05').toISOString()).toBe('2026-11-21T23:05:00.000Z');
    expect(fromInput('2026-07-01').toISOString()).toBe('2026-07-01T04:00:00.000Z');
    // The clocks go back on this day, which has 25 hours.
    expect(fromInput('2026-11-01').toISOString()).toBe('2026-11-01T04:00:00.000Z');
    expect(endOfDay('2026-11-01').toISOString()).toBe('2026-11-02T05:00:00.000Z');
    expect(fromInput('nonsense').getTime()).toBeNaN();
  });

  it('applies to files, in which a time is exact', () => {
    zone.show('America/New_York');
    expect(zonedTime(AT)).toBe('2026-11-21T18:05:09.123-05:00');
    expect(timeInFile(Date.parse('2026-07-01T12:00:00Z') * 1000)).toBe('2026-07-01T08:00:00-04:00');
    expect(timeInFile('2026-07-01T12:00:00Z')).toBe('2026-07-01T08:00:00-04:00');
    expect(timeInFile(null)).toBe('');
    zone.show('UTC');
    expect(timeInFile('2026-07-01T12:00:00Z')).toBe('2026-07-01T12:00:00Z');
  });

  it('applies to the ticks of charts', () => {
    zone.show('Asia/Kolkata');
    const from = Date.parse('2026-11-21T12:00:00Z') / 1000;
    const ticks = timeTicks(from, from + 24 * 3600, 8);
    expect(ticks.map(({ label }) => label)).toContain('22 Nov');
    expect(ticks.find(({ label }) => label === '22 Nov')!.at).toBe(Date.parse('2026-11-21T18:30:00Z') / 1000);
    const micros = (text: string) => Date.parse(text) * 1000;
    expect(days(micros('2026-11-21T12:00:00Z'), micros('2026-11-22T12:00:00Z'))).toEqual([
      micros('2026-11-21T18:30:00Z'),
    ]);
  });

  it('applies to Markdown, which names the zone', () => {
    zone.show('Europe/Berlin');
    const query = 'from=2026-11-20T00:00:00Z&to=2026-11-21T00:00:00Z';
    const [[, text]] = seenFacts(readFilters(new URLSearchParams(query))) as [[string, string]];
    expect(text).toBe('20 Nov 2026, 01:00 to 21 Nov 2026, 01:00 (UTC+1, Europe/Berlin)');
  });

  it('does not move days that the server counts in UTC, which are named as such', () => {
    zone.show('America/New_York');
    expect(utcDate('2026-11-21T00:00:00Z')).toBe('21 Nov 2026');
    expect(period('2026-11-18T00:00:00Z', '2026-11-26T00:00:00Z')).toBe('18 Nov – 25 Nov (UTC)');
  });
});
