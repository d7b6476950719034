import { expect, test } from 'vitest';
import { noteRedelivery, retryBounds } from '../../src/ingest/retry.ts';

test('redeliveries are expected for ten seconds after the last one', () => {
  const redeliveries = { untilMs: -Infinity };
  noteRedelivery(redeliveries, 5);
  expect(redeliveries.untilMs).toBe(10_005);
  noteRedelivery(redeliveries, 10_004);
  expect(redeliveries.untilMs).toBe(20_004);
});

test('a batch is tried a hundred times, for half a minute', () => {
  expect(retryBounds).toEqual({ attempts: 100, forMs: 30_000 });
});
