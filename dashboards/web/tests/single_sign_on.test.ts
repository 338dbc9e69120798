import { expect, test } from 'vitest';
import { loginFault, startAddress } from '../src/account/single_sign_on';

test('a login with the provider leads back to the current page', () => {
  const page = { pathname: '/config', search: '?project=shop&login_error=busy&tab=history', hash: '#top' };
  const start = new URL(startAddress(page), 'http://localhost');
  expect(start.pathname).toBe('/api/v1/session/oidc');
  expect(start.searchParams.get('to')).toBe('/config?project=shop&tab=history#top');
  const first = new URL(startAddress({ pathname: '/', search: '?login_error=busy', hash: '' }), 'http://localhost');
  expect(first.searchParams.get('to')).toBe('/');
});

test('every fault has a sentence, even an unknown one', () => {
  expect(loginFault(null)).toBe('');
  expect(loginFault('unverified_email')).toContain('did not confirm your e-mail address');
  expect(loginFault('<b>made up</b>')).toBe('The login failed. Try again.');
});
