import { describe, expect, it } from 'vitest';
import { factsOf, sentenceText, tell, whoOf, type Entry } from '../src/audit/sentences';

function entry(action: string, more: Partial<Entry> = {}): Entry {
  return {
    id: '1',
    project: 'shop',
    at: 0,
    actor: 'user:0190aaaa-0000-7000-8000-000000000001',
    actor_name: 'Ann',
    action,
    subject: '0190aaaa-0000-7000-8000-0000000000ff',
    subject_name: null,
    detail: {},
    ...more,
  };
}
const said = (one: Entry) => sentenceText(one, whoOf(one));

describe('entries of the audit log', () => {
  it('are sentences with the names of people and objects', () => {
    expect(said(entry('ingest_key.created', { subject_name: 'mobile' }))).toBe('Ann created ingest key ‘mobile’.');
    const role = { role: 'editor', role_before: 'viewer' };
    expect(said(entry('membership.set', { subject_name: 'Bob', detail: role }))).toBe(
      'Ann set the role of ‘Bob’ to editor (before: viewer).',
    );
    const note = { note: 'kill switch: too much' };
    expect(said(entry('configuration.switched_off', { subject: '3', detail: note }))).toBe(
      'Ann switched the project off with ‘revision 3’: kill switch: too much',
    );
    expect(said(entry('session.created'))).toBe('Ann logged in.');
  });

  it('of unnamed objects and of newer servers are sentences, too', () => {
    expect(said(entry('device_key.revoked'))).toBe('Ann revoked device key ‘…000000ff’.');
    expect(said(entry('robot.built', { subject: 'r2' }))).toBe('Ann robot built ‘r2’.');
  });

  it('name actors that are not people', () => {
    expect(whoOf(entry('', { actor: 'token:1', actor_name: 'CI' }))).toBe('API token CI');
    expect(whoOf(entry('', { actor: 'cli:root', actor_name: null }))).toBe('root on the command line');
    expect(whoOf(entry('', { actor: 'system:alerts', actor_name: null }))).toBe('the server (alerts)');
  });

  it('name the person to whom an incident is assigned', () => {
    const detail = { name: 'Checkout is slow', assignee: 'Bob' };
    expect(said(entry('incident.assigned', { subject_name: 'Checkout is slow', detail }))).toBe(
      'Ann assigned incident ‘Checkout is slow’ to Bob.',
    );
  });

  it('link to a page only if there is a target', () => {
    expect(tell(entry('incident.acknowledged', { subject: '7' })).page).toEqual({ path: '/incidents/7' });
    expect(tell(entry('session.created')).page).toBeUndefined();
  });

  it('list their details with times as times', () => {
    const detail = {
      name: 'mobile',
      quotas: { events_per_second: 5, bytes_per_day: null },
      expires_at: 7,
      app_ids: ['a', 'b'],
    };
    expect(factsOf(entry('', { detail }), (micros) => `time ${micros}`)).toEqual([
      ['quotas events per second', '5'],
      ['expires at', 'time 7'],
      ['app ids', 'a, b'],
    ]);
  });
});
