import { expect, it } from 'vitest';
import { absent } from '../src/components/missing_value';

it('says whether a value loads, could not be loaded or does not exist', () => {
  expect(absent()).toBe('–');
  expect(absent({ data: undefined, busy: true, problem: null })).toBe('…');
  expect(absent({ data: undefined, busy: false, problem: null })).toBe('…');
  expect(absent({ data: [], busy: true, problem: null })).toBe('…');
  expect(absent({ data: [], busy: false, problem: null })).toBe('–');
  expect(absent({ data: undefined, busy: false, problem: 'no answer' })).toBe('not loaded');
});
