import { afterAll, beforeAll, expect, test } from 'vitest';
import { createLocalBus, type LiveDevice } from '../../src/bus/bus.ts';
import { monotonicClock } from '../../src/lib/clock.ts';
import { createLiveBroadcaster } from '../../src/live/live.ts';
import { SubscriberBudget } from '../../src/streams/subscriber.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());

const bus = createLocalBus({
  onListenerError: (error) => {
    throw error;
  },
});

function open() {
  const { join } = createLiveBroadcaster({
    db: database.db,
    bus,
    process: 'a',
    heartbeatMs: 15_000,
    monotonicClock,
    budget: new SubscriberBudget(67_108_864),
    onError: (error) => {
      throw error;
    },
  });
  /** A stream of all values of an account. */
  return (accountId: number) => {
    const ids = () => null;
    const reach = { key: 'all', accountId, ids, has: () => true, refresh: async () => undefined };
    return join({ reach, senses: undefined, maxHz: undefined });
  };
}

const device = (count: number, from = 0): LiveDevice => ({
  deviceId: 1,
  uuid: 'u',
  values: Array.from({ length: count }, (_, i) => ['a', from + i, i]),
});
const hear = (accountId: number, ...devices: LiveDevice[]) =>
  bus.publish('measurements', { accountId, devices });

test('gives what was heard in its order', async () => {
  const stream = await open()(1);
  hear(1, device(2), device(1, 2));
  hear(1, device(2, 3));
  let text = '';
  for await (const { bytes } of stream.subscriber.read()) {
    text += String(bytes);
    if (text.includes('"ts":4')) break;
  }
  const times = [...text.matchAll(/"ts":(\d+)/g)].map(([, ts]) => Number(ts));
  expect(times).toEqual([0, 1, 2, 3, 4]);
  stream.leave();
});

test('holds a limited number of values of an account, and of all', async () => {
  const streams = await Promise.all([1, 2, 3, 4, 5, 6, 7].map(open()));
  const reasons = () => streams.map(({ subscriber }) => subscriber.reason);
  // Nothing is sent meanwhile: that takes a turn of the event loop.
  for (const accountId of [1, 2, 3, 4, 5, 6]) hear(accountId, device(100_000));
  expect(reasons()).toEqual([null, null, null, null, null, 'overloaded', null]);
  hear(1, device(1));
  expect(reasons()[0]).toBe('overloaded');
  // What the first account had waiting gave its place back.
  hear(7, device(100_000));
  expect(reasons()[6]).toBeNull();
  hear(2, device(1));
  expect(reasons()[1]).toBe('overloaded');
  for (const stream of streams) stream.leave();
});
