import { expect, test } from 'vitest';
import { Subscriber, SubscriberBudget } from '../../src/streams/subscriber.ts';

const mebibyte = 1_048_576;
const piece = { bytes: Buffer.alloc(32_768), position: 'p' };

/** Queues pieces until the subscriber is dropped. Returns how many bytes were queued before. */
function fill(subscriber: Subscriber<string>): number {
  let bytes = 0;
  while (!subscriber.hasEnded) {
    subscriber.give(piece, 0);
    if (!subscriber.hasEnded) bytes += piece.bytes.length;
  }
  return bytes;
}

test('a mebibyte may wait for one reader, less the more wait, and not much more than the limit in all', () => {
  const budget = new SubscriberBudget(32 * mebibyte);
  const add = () => new Subscriber('p', 0, budget);
  expect(fill(add())).toBe(mebibyte);
  const subscribers = Array.from({ length: 200 }, add);
  const filled = subscribers.map(fill);
  expect(filled.at(0)).toBe(mebibyte);
  expect(filled.at(-1)).toBeLessThan(mebibyte / 4);
  // 64 KiB may always wait for each reader.
  expect(budget.bytes).toBeLessThanOrEqual((32 + 201 / 16) * mebibyte);
  // A reader that keeps up is not dropped.
  const quick = add();
  quick.give(piece, 0);
  quick.give(piece, 0);
  expect(quick.hasEnded).toBe(false);
  for (const subscriber of [...subscribers, quick]) subscriber.leave();
  expect(budget.bytes).toBe(mebibyte);
});

test('what is read, or has lost its reader, no longer counts', async () => {
  const budget = new SubscriberBudget(32 * mebibyte);
  const [read, left] = [new Subscriber('p', 0, budget), new Subscriber('p', 0, budget)];
  for (const subscriber of [read, left]) subscriber.give(piece, 0);
  expect(budget.bytes).toBe(65_536);
  await read.read().next();
  expect(budget.bytes).toBe(32_768);
  left.leave();
  left.give(piece, 0);
  expect(budget.bytes).toBe(0);
});
