import { expect, test } from 'vitest';
import { passwordFaults, refusedFields } from '../src/account/new_password';
import { Problem } from '../src/api/problem';
import { refusesPassword } from '../src/api/session_refresh';
import { hasEnded, keyState } from '../src/keys/key_state';
import { activeText, countActive } from '../src/people/active_tokens';

const NEW = 'a long enough secret';
const NOW = Date.UTC(2026, 10, 23);
const HOUR = 3_600_000_000;

test('a new password that follows the rules has no faults', () => {
  expect(passwordFaults({ present: 'old', wanted: NEW, again: NEW })).toEqual({});
  expect(passwordFaults({ wanted: NEW, again: NEW })).toEqual({});
});

test('each fault of a new password is at its field', () => {
  const empty = passwordFaults({ present: '', wanted: '', again: '' });
  expect(empty).toEqual({ present: 'Enter your current password.', wanted: 'Enter a new password.' });
  expect(passwordFaults({ present: 'old', wanted: 'eleven char', again: '' }).wanted).toBe(
    'The new password is too short: 11 of at least 12 characters.',
  );
  expect(passwordFaults({ present: 'old', wanted: NEW, again: `${NEW}!` })).toEqual({
    again: 'The two new passwords do not match.',
  });
  expect(passwordFaults({ present: NEW, wanted: NEW, again: NEW }).wanted).toContain('same as the current one');
});

test('a password has the limits of the server: at least 12 characters, at most 256 bytes', () => {
  const emoji = '🔑'.repeat(11);
  expect(passwordFaults({ wanted: emoji, again: emoji }).wanted).toContain('11 of at least 12');
  const long = 'ü'.repeat(128);
  expect(passwordFaults({ wanted: long, again: long })).toEqual({});
  expect(passwordFaults({ wanted: `${long}ü`, again: `${long}ü` }).wanted).toContain('too long');
});

test('an error of the server is at the field that caused it', () => {
  expect(refusedFields(Problem.of(401, { code: 'login_refused' }))).toEqual({
    present: 'The current password is wrong.',
  });
  const unfit = Problem.of(422, { code: 'password_unfit', detail: 'a password must have at least 12 characters' });
  expect(refusedFields(unfit)).toEqual({ wanted: 'A password must have at least 12 characters.' });
  expect(refusedFields(Problem.of(429, { code: 'too_many_logins' }))).toEqual({});
});

test('only for a wrong password is a 401 not followed by a refresh', async () => {
  const refused = Response.json({ code: 'login_refused' }, { status: 401 });
  expect(await refusesPassword(refused)).toBe(true);
  expect(await refused.json()).toEqual({ code: 'login_refused' });
  expect(await refusesPassword(Response.json({ code: 'session_ended' }, { status: 401 }))).toBe(false);
  expect(await refusesPassword(new Response('<html>', { status: 401 }))).toBe(false);
});

test('a key ends by revocation or by its date', () => {
  expect(hasEnded({}, NOW)).toBe(false);
  expect(hasEnded({ expires_at: NOW * 1000 + HOUR }, NOW)).toBe(false);
  expect(hasEnded({ expires_at: NOW * 1000 }, NOW)).toBe(true);
  expect(hasEnded({ revoked_at: 1, expires_at: NOW * 1000 + HOUR }, NOW)).toBe(true);
  expect(keyState({ revoked_at: 1 }, NOW).text).toBe('revoked');
  expect(keyState({ expires_at: NOW * 1000 }, NOW).text).toBe('expired');
  expect(keyState({ expires_at: NOW * 1000 + HOUR }, NOW).text).toBe('expires in 1 hour');
  expect(keyState({}, NOW).text).toBe('active');
});

test('active tokens of a person are tokens that the person created and that still work', () => {
  const [ann, bob] = ['ann@example.com', 'bob@example.com'];
  const tokens = [
    { made_by: bob },
    { made_by: bob, expires_at: NOW * 1000 + HOUR },
    { made_by: bob, expires_at: NOW * 1000 - HOUR },
    { made_by: bob, revoked_at: 1 },
    { made_by: ann },
    { made_by: null },
  ];
  expect(countActive(tokens, bob, NOW)).toBe(2);
  expect([0, 1, 2].map(activeText)).toEqual(['no active API tokens', '1 active API token', '2 active API tokens']);
});
