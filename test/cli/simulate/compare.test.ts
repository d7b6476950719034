import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareReadings, type Reading } from '../../../src/cli/simulate/devices.ts';

const reading = fc.record<Reading>({
  sId: fc.constantFrom('0x10', '0x11'),
  val: fc.integer({ min: -4_000, max: 8_500 }).map((hundredths) => hundredths / 100),
  ts: fc.integer({ min: 1, max: 1_000_000 }),
});
const readings = fc.uniqueArray(reading, {
  selector: ({ sId, val, ts }) => `${sId} ${val} ${ts}`,
  minLength: 1,
});

describe('the comparison', () => {
  it('finds exactly what is missing, in whatever order', () => {
    const cases = readings.chain((sent) =>
      fc.tuple(fc.constant(sent), fc.shuffledSubarray(sent, { minLength: 0 })),
    );
    fc.assert(
      fc.property(cases, ([sent, stored]) => {
        const result = compareReadings({ sent, acknowledged: sent }, stored);
        expect(new Set(result.lost)).toEqual(new Set(sent.filter((one) => !stored.includes(one))));
        expect(result.found).toBe(stored.length);
        expect([...result.doubled, ...result.foreign]).toEqual([]);
      }),
    );
  });

  it('accepts what was sent and stored without an acknowledgement', () => {
    const [one, two] = [1, 2].map((ts) => ({ sId: '0x10', val: 1, ts })) as [Reading, Reading];
    const result = compareReadings({ sent: [one, two], acknowledged: [one] }, [one, two]);
    expect(result).toMatchObject({ lost: [], doubled: [], foreign: [], unacknowledged: 1 });
  });
});
