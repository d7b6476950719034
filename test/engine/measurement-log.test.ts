import fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeMeasurements, encodeMeasurements } from '../../src/engine/runtime-codec.ts';
import type { Measurement } from '../../src/contract/values.ts';
import { runs } from '../support/share.ts';

const number = fc.double({ noNaN: true, noDefaultInfinity: true }).map((val) => val + 0);
const measurement: fc.Arbitrary<Measurement> = fc.record(
  {
    sId: fc.constantFrom('0x10', 'a "quoted" name', 'ä,]'),
    val: fc.oneof(number, fc.record({ lat: number, long: number }, { noNullPrototype: true })),
    ts: fc.integer({ min: 0, max: 8.64e15 }),
  },
  { noNullPrototype: true },
);

test('measurements are read as they were written', () => {
  fc.assert(
    fc.property(fc.array(measurement), (list) => {
      expect(decodeMeasurements(encodeMeasurements(list))).toStrictEqual(list);
    }),
    { numRuns: runs(1_000) },
  );
});

test('is short: an ordinary measurement takes its value and a few characters', () => {
  const list = Array.from({ length: 50 }, (_, n) => ({ sId: '0x10', val: n / 10, ts: 1e12 + n }));
  expect(encodeMeasurements(list).length).toBeLessThan(50 * 7);
});

test('refuses other text', () => {
  expect(() => decodeMeasurements('{}')).toThrow('expected array');
  expect(() => decodeMeasurements('[[1,2,3]]')).toThrow('expected string');
});
