import fc from 'fast-check';
import { expect, test } from 'vitest';
import { TokenBucket } from '../../src/lib/token-bucket.ts';

const rate = { perSecond: 10, burst: 20 };

test('a bucket begins full, goes into debt, and says how long that lasts', () => {
  const bucket = new TokenBucket(rate, 0);
  bucket.take(25, rate, 0);
  expect(bucket.waitMs(rate, 0)).toBe(600);
  expect(bucket.waitMs(rate, 500)).toBe(100);
  // Something of a token is enough for one, a whole one for the other.
  expect([bucket.waitMs(rate, 550), bucket.waitForOneMs(rate, 550)]).toEqual([0, 50]);
  expect(bucket.waitForOneMs(rate, 600)).toBe(0);
});

test('forgiving cancels a debt, and takes nothing away', () => {
  const bucket = new TokenBucket(rate, 0);
  bucket.take(15, rate, 0);
  bucket.forgive();
  expect(bucket.tokens).toBe(5);
  bucket.take(15, rate, 0);
  bucket.forgive();
  expect(bucket.tokens).toBe(0);
});

test('a full bucket is no different from a new one', () => {
  const bucket = new TokenBucket(rate, 0);
  expect(bucket.isFull(rate, 0)).toBe(true);
  bucket.take(20, rate, 0);
  expect([bucket.isFull(rate, 1_999), bucket.isFull(rate, 2_000)]).toEqual([false, true]);
  expect(bucket.level(rate, 1_000_000)).toBe(20);
});

test('whoever waits as long as told takes no more than the rate and one burst, and one charge of debt', () => {
  const amounts = fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 60 });
  fc.assert(
    fc.property(amounts, (taken) => {
      let atMs = 0;
      let sum = 0;
      const bucket = new TokenBucket(rate, atMs);
      for (const amount of taken) {
        atMs += bucket.waitMs(rate, atMs);
        bucket.take(amount, rate, atMs);
        sum += amount;
        expect(sum).toBeLessThanOrEqual(rate.burst + (atMs * rate.perSecond) / 1_000 + amount);
      }
    }),
  );
});
