// Components as HTML.

import { render } from 'svelte/server';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import IncidentTable from '../src/alerts/IncidentTable.svelte';
import type { Incident } from '../src/alerts/incident';
import type { Mute } from '../src/alerts/mutes';
import Periods from '../src/versions/Periods.svelte';

const MINUTE = 60_000_000;

describe('the periods of a comparison', () => {
  const of = { from: '2026-11-06T00:00:00Z', to: '2026-11-13T00:00:00Z' };

  it('at the same age have a link to the same days', () => {
    const { body } = render(Periods, {
      props: { of: { ...of, base_from: '2026-10-06T00:00:00Z', base_to: '2026-10-13T00:00:00Z' } },
    });
    expect(body).toContain('at the same age: ');
    expect(body).toContain('Compare on the same days');
  });

  it('without a common age have no link to the days that the page compares already', () => {
    const { body } = render(Periods, { props: { of } });
    expect(body).toContain('because the ages of the versions do not overlap');
    expect(body).not.toContain('<a');
  });
});

describe('a firing incident in a table', () => {
  const now = Date.now() * 1000;
  const incident = {
    ...{ id: '1', rule: '7', group: { name: 'checkout' }, kind: 'alert', state: 'firing', severity: 'critical' },
    ...{ title: 'Checkout got slower', summary: '', owner: '', started_at: now - MINUTE },
  } as unknown as Incident;
  const mute = { rule: '7', starts_at: now - MINUTE, ends_at: now + 60 * MINUTE } as unknown as Mute;
  const body = (mutes: Mute[]) =>
    render(IncidentTable, { props: { caption: 'Incidents', incidents: [incident], people: [], mutes } }).body;

  // Tables read the width of the window.
  beforeAll(() => void vi.stubGlobal('window', { innerWidth: 1400 }));
  afterAll(() => void vi.unstubAllGlobals());

  it('is red, unless a mute covers it', () => {
    expect(body([])).toMatch(/class="badge bad[^"]*">critical/);
    expect(body([])).not.toContain('muted</span>');
    expect(body([mute])).not.toMatch(/class="badge bad/);
    expect(body([mute])).toContain('>muted</span>');
    expect(body([{ ...mute, rule: '8' }])).toMatch(/class="badge bad/);
  });
});
