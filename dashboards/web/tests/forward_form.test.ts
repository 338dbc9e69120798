import { describe, expect, it } from 'vitest';
import {
  changeOf,
  endpointFault,
  fieldsOf,
  headersFault,
  ruleFaults,
  type Forward,
} from '../src/opentelemetry/forward_form';

const saved: Forward = {
  endpoint: 'https://collector.example.com',
  spans: [{ name: 'checkout*', min_duration_ms: 500, only_errors: true }],
  incidents: true,
  compression: 'none',
  header_names: ['authorization'],
  state: { delivered: 0, waiting: 0, waiting_bytes: 0, dropped: 0, refused: 0, rejected: 0 },
};

describe('the form for forwarding', () => {
  it('saves what it shows, and keeps the headers', () => {
    const { endpoint, spans, incidents, compression } = saved;
    expect(changeOf(fieldsOf(saved))).toEqual({ endpoint, spans, incidents, compression, headers: undefined });
  });

  it('replaces or removes the headers', () => {
    const fields = fieldsOf(saved);
    const headers = ' authorization: Bearer a:b \n\nx-scope:shop';
    expect(changeOf({ ...fields, headers }).headers).toEqual({ authorization: 'Bearer a:b', 'x-scope': 'shop' });
    expect(changeOf({ ...fields, removesHeaders: true }).headers).toEqual({});
  });

  it('leaves empty rules out', () => {
    const rules = [
      { name: ' a ', least: '', onlyErrors: false },
      { name: ' ', least: '', onlyErrors: false },
    ];
    expect(changeOf({ ...fieldsOf(saved), rules }).spans).toEqual([
      { name: 'a', min_duration_ms: 0, only_errors: false },
    ]);
  });

  it('describes faults', () => {
    expect(endpointFault('http://localhost:4318/otlp')).toBe('');
    for (const wrong of ['collector', 'https://', 'https://a.example/?x=1']) expect(endpointFault(wrong)).not.toBe('');
    expect(headersFault('authorization: Bearer x')).toBe('');
    for (const wrong of ['authorization', 'authorization:', 'a b: c']) expect(headersFault(wrong)).not.toBe('');
    expect(ruleFaults({ name: '', least: '', onlyErrors: false })).toEqual({ name: '', least: '' });
    expect(ruleFaults({ name: '', least: '', onlyErrors: true }).name).toMatch('Enter a name');
    expect(ruleFaults({ name: 'a', least: '1 s', onlyErrors: true }).least).toMatch('Enter a number of milliseconds');
  });
});
