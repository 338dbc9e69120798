import { expect, test } from 'vitest';
import { LINKS, spanLinks } from '../src/traces/span_links';

const TRACE = '0102030405060708090a0b0c0d0e0f10';

test('links of a span are read and anything else is ignored', () => {
  const value = `${TRACE}-0102030405060708 ${TRACE}-1112131415161718`;
  expect(spanLinks({ [LINKS]: value })).toEqual([
    { trace: TRACE, span: '0102030405060708' },
    { trace: TRACE, span: '1112131415161718' },
  ]);
  expect(spanLinks({ [LINKS]: 'none', other: value })).toEqual([]);
  expect(spanLinks({})).toEqual([]);
});
