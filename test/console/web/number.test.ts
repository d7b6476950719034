import fc from 'fast-check';
import { expect, test } from 'vitest';
import { parseNumber, typeNumber } from '../../../src/console/web/text/number.ts';

test.each([
  ['10,5', 'de', 10.5],
  ['-10,5', 'de', -10.5],
  // As a page in German says it, and as an iPhone and a spreadsheet write it.
  ['\u221210,5', 'de', -10.5],
  ['\u2013 10,5', 'de', -10.5],
  ['10.5', 'de', 10.5],
  ['1.648.500', 'de', 1_648_500],
  ['1.648.500,25', 'de', 1_648_500.25],
  ['1\u202f648\u202f500', 'de', 1_648_500],
  ['1.500', 'de', 1_500],
  // No thousands: they do not begin with a zero.
  ['0.125', 'de', 0.125],
  ['-0.500', 'de', -0.5],
  ['0,125', 'en-GB', 0.125],
  ['10.5', 'en-GB', 10.5],
  ['10,5', 'en-GB', 10.5],
  ['1,648,500', 'en-GB', 1_648_500],
  ['1,500', 'en-GB', 1_500],
  ['-.5', 'en-GB', -0.5],
  ['1.5e-7', 'en-GB', 1.5e-7],
  ['', 'en-GB', null],
  ['-', 'en-GB', null],
  ['8 °C', 'en-GB', null],
  ['10 5', 'en-GB', null],
  ['1,5.3', 'en-GB', null],
  ['1.5,3', 'de', null],
  ['0x10', 'en-GB', null],
  ['1e999', 'en-GB', null],
] as const)('%j in %s is %s', (text, locale, number) => {
  expect(parseNumber(text, locale)).toBe(number);
});

test('every number is read as it was written into a field', () => {
  fc.assert(
    fc.property(
      fc.double({ noNaN: true, noDefaultInfinity: true }),
      fc.constantFrom('de', 'en-GB'),
      (number, locale) => {
        // -0 is typed as 0.
        expect(parseNumber(typeNumber(number, locale), locale)).toBe(number + 0);
      },
    ),
  );
});
