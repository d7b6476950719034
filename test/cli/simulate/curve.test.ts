import { describe, expect, it } from 'vitest';
import { configurationOf, readingsAt } from '../../../src/cli/simulate/devices.ts';

describe('the curves', () => {
  const senses = configurationOf(0).module[0]?.senses ?? [];

  it('stay within the ranges that the device reports', () => {
    const readings = Array.from({ length: 50 * 500 }, (_, i) => readingsAt(i % 50, i)).flat();
    const outside = readings.filter(({ sId, val }) => {
      const sense = senses.find((one) => one.sId === sId);
      return !(sense && val >= sense.min && val <= sense.max);
    });
    expect(readings.length).toBe(50_000);
    expect(outside).toEqual([]);
  });

  it('leave the cold and return, so that both events of the purpose happen', () => {
    for (let device = 0; device < 50; device += 1) {
      const values = Array.from({ length: 48 }, (_, n) => readingsAt(device, n)[0]?.val ?? NaN);
      const inARow = (test: (val: number) => boolean) =>
        values.some((val, n) => n > 0 && test(val) && test(values[n - 1] ?? NaN));
      expect(inARow((val) => val > 8)).toBe(true);
      expect(inARow((val) => val < 6)).toBe(true);
    }
  });

  it('are the same each time', () => {
    expect(readingsAt(3, 70)).toEqual(readingsAt(3, 70));
    expect(readingsAt(3, 70)).not.toEqual(readingsAt(4, 70));
  });
});
