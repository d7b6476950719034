import { beforeAll, expect, test, vi } from 'vitest';
import { formatNumber, formatTyped } from '../../../src/console/web/text/format.ts';
import { speak } from '../../../src/console/web/text/t.ts';

// What the page's modules look at when they are loaded.
vi.hoisted(() =>
  Object.assign(globalThis, {
    location: { pathname: '/console/', search: '' },
    addEventListener: () => {},
    document: { documentElement: {}, addEventListener: () => {} },
  }),
);
beforeAll(() => speak('en'));

test.each([
  [0.04, undefined, '0.04'],
  [-0.04, undefined, '-0.04'],
  [0.012_345_6, undefined, '0.0123'],
  [0.000_000_123, undefined, '0.000000123'],
  [4.233_33, undefined, '4.233'],
  [1_648_500, undefined, '1,648,500'],
  [0, undefined, '0'],
  // As its sense is configured.
  [0.04, 1, '0.0'],
  [-0.04, 1, '0.0'],
  [21, 2, '21.00'],
])('%d with %s decimals is %s', (value, decimals, said) => {
  expect(formatNumber(value, decimals)).toBe(said);
});

test.each([
  [8, 1, '8.0'],
  [8.25, 1, '8.25'],
  [0.000_4, undefined, '0.0004'],
  [-12.345_678, 0, '-12.345678'],
  [1e-7, 1, '0.0000001'],
])('a limit of %d keeps all its digits: %s decimals, %s', (value, decimals, said) => {
  expect(formatTyped(value, { unit: '°C', decimals })).toBe(`${said}\u00a0°C`);
});
