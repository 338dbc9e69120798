import { expect, test } from 'vitest';
import { documentOf, fieldsOf, inBothLists, nameFault, placeText } from '../src/scrubbing/scrubbing_form';

const empty = { built_in: true, rules: [], secret_attributes: [], plain_attributes: [] };

test('a document survives a round trip through the form', () => {
  const document = {
    built_in: false,
    rules: [{ name: 'customer', pattern: ' CU-[0-9]{4}' }],
    secret_attributes: ['Nickname', 'a, b'],
    plain_attributes: ['order'],
  };
  expect(documentOf(fieldsOf(document))).toEqual(document);
});

test('empty rules and lines and names that come twice are left out', () => {
  const rules = [
    { name: '', pattern: '' },
    { name: ' a ', pattern: 'x' },
  ];
  expect(documentOf({ builtIn: true, rules, secret: 'one\n\n two \none\n', plain: ' ' })).toEqual({
    built_in: true,
    rules: [{ name: 'a', pattern: 'x' }],
    secret_attributes: ['one', 'two'],
    plain_attributes: [],
  });
});

test('an attribute in both lists is found regardless of case', () => {
  expect(inBothLists({ ...empty, secret_attributes: ['Order', 'name'], plain_attributes: ['order'] })).toEqual([
    'Order',
  ]);
  expect(inBothLists(empty)).toEqual([]);
});

test('names of rules are checked', () => {
  for (const name of ['', 'Customer', 'a b', 'x'.repeat(33)]) expect(nameFault(name), name).not.toBe('');
  for (const name of ['customer', ' customer_2 ']) expect(nameFault(name), name).toBe('');
});

test('places have names for people', () => {
  expect(placeText({ place: 'attribute', attribute: 'order.id' })).toBe('Attribute order.id');
  expect(placeText({ place: 'log_line', attribute: '' })).toBe('Log line');
  expect(placeText({ place: 'of_the_future', attribute: '' })).toBe('of the future');
});
