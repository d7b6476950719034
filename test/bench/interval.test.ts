import { expect, test } from 'vitest';
import { medianInterval } from '../../bench/pairs/interval.ts';

const upTo = (count: number) => Array.from({ length: count }, (_, index) => index + 1);

test('the ranks equal those in tables of the sign test', () => {
  const expected: [count: number, low: number, high: number, coverage: number][] = [
    [6, 1, 6, 0.9688],
    [10, 2, 9, 0.9785],
    [20, 6, 15, 0.9586],
    [40, 14, 27, 0.9615],
    [100, 40, 61, 0.9648],
  ];
  for (const [count, low, high, coverage] of expected) {
    const interval = medianInterval(upTo(count).toReversed());
    expect(interval).toMatchObject({ median: (count + 1) / 2, low, high });
    expect(interval.coverage).toBeCloseTo(coverage, 4);
  }
});

test('too few values for 95 % give the whole range, with its actual confidence', () => {
  expect(medianInterval([1.2, 0.9])).toEqual({ median: 1.05, low: 0.9, high: 1.2, coverage: 0.5 });
  expect(medianInterval([1])).toMatchObject({ median: 1, low: 1, high: 1, coverage: 0 });
  expect(medianInterval(upTo(5)).coverage).toBeCloseTo(0.9375, 4);
});

test('one outlier moves neither the median nor the interval', () => {
  const wild = [...upTo(39), 1e9];
  expect(medianInterval(wild)).toEqual(medianInterval(upTo(40)));
});

test('a value that is not a number gives no interval', () => {
  expect(medianInterval([1, NaN, 2])).toEqual({
    median: NaN,
    low: NaN,
    high: NaN,
    coverage: NaN,
  });
  expect(medianInterval([]).median).toBeNaN();
});

test('the interval contains the true median as often as stated', () => {
  let state = 7;
  const draw = () => (state = (state * 48_271) % 2_147_483_647) / 2_147_483_647;
  const trials = 4_000;
  let held = 0;
  for (let trial = 0; trial < trials; trial += 1) {
    // Skewed, as ratios of times are. The median of -ln(u) is ln 2.
    const { low, high } = medianInterval(Array.from({ length: 15 }, () => -Math.log(draw())));
    if (low <= Math.LN2 && Math.LN2 <= high) held += 1;
  }
  expect(held / trials).toBeCloseTo(medianInterval(upTo(15)).coverage, 1);
  expect(held / trials).toBeGreaterThan(0.95);
});
