import { expect, test } from 'vitest';
import { createSlices } from '../../src/streams/subscriber.ts';

test('accounts take turns: one with much to write does not keep another waiting', async () => {
  const slicesOf = createSlices();
  const [many, few] = [slicesOf(1), slicesOf(2)];
  const order: string[] = [];
  const all = [
    ...Array.from({ length: 50 }, () => many().then(() => order.push('many'))),
    few().then(() => order.push('few')),
  ];
  await Promise.all(all);
  expect(order).toHaveLength(51);
  expect(order.indexOf('few')).toBeLessThanOrEqual(1);
});

test('the event loop does other work between two pieces', async () => {
  const nextSlice = createSlices()(1);
  let done = 0;
  for (let n = 0; n < 5; n += 1) void nextSlice().then(() => (done += 1));
  for (let turn = 0, before = 0; done < 5 && turn < 100; turn += 1, before = done) {
    await new Promise(setImmediate);
    expect(done - before).toBeLessThanOrEqual(1);
  }
  expect(done).toBe(5);
});
