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
