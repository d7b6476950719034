import { expect, test } from 'vitest';
import { type BusMessages, createLocalBus } from '../../src/bus/bus.ts';
import { afterCommit } from '../../src/ingest/after-commit.ts';
import { noChanges } from '../../src/ingest/rules/model.ts';
import { createAnnouncer, startListeners } from '../../src/live/listeners.ts';

const newBus = () =>
  createLocalBus({
    onListenerError: (error) => {
      throw error;
    },
  });

test('a process that stores values knows for whom somebody listens, whichever started first', () => {
  const bus = newBus();
  const announcer = createAnnouncer({ bus, process: 'a' });
  announcer.add(1);
  const listeners = startListeners({ bus, monotonicClock: () => 0 });
  expect([...listeners.accounts]).toEqual([1]);
  announcer.add(2);
  announcer.delete(1);
  expect([...listeners.accounts]).toEqual([2]);
  announcer.delete(2);
  expect(listeners.accounts.size).toBe(0);
  listeners.close();
});

test('a process that stops announcing is forgotten', async () => {
  const bus = newBus();
  let monotonicMs = 0;
  const listeners = startListeners({ bus, monotonicClock: () => monotonicMs, expiryMs: 40 });
  bus.publish('listeners', { process: 'killed', accountIds: [1, 2] });
  bus.publish('listeners', { process: 'alive', accountIds: [2] });
  monotonicMs = 39;
  bus.publish('listeners', { process: 'alive', accountIds: [2] });
  expect(listeners.accounts.has(1)).toBe(true);
  monotonicMs = 41;
  await expect.poll(() => listeners.accounts.has(1)).toBe(false);
  expect(listeners.accounts.has(2)).toBe(true);
  monotonicMs = 80;
  await expect.poll(() => listeners.accounts.size === 0).toBe(true);
  listeners.close();
});

test('values are published for those accounts only, in order, at most 500 in a message', () => {
  const bus = newBus();
  const messages: BusMessages['measurements'][] = [];
  bus.subscribe('measurements', (message) => messages.push(message));
  const devices = [1, 2, 3].map((id) => ({
    deviceId: id,
    uuid: `u${id}`,
    accountId: id < 3 ? 7 : 8,
  }));
  const measurements = devices.flatMap(({ deviceId }) =>
    Array.from({ length: 400 }, (_, i) => ({
      deviceId,
      sId: 'a',
      ts: i,
      val: 1,
      long: i === 0 ? 2 : undefined,
    })),
  );
  const deviceBatches = devices.map((device) => ({ queue: { device }, fragments: [] }));
  const rows = { ...noChanges(), measurements };
  const errors: unknown[] = [];
  type Given = Parameters<typeof afterCommit>;
  afterCommit(
    { deviceBatches, rows, fragments: [], orphaned: [] } as unknown as Given[0],
    { recorded: [] } as unknown as Given[1],
    {
      bus,
      log: { error: (context: unknown) => errors.push(context) } as unknown as Given[2]['log'],
      clock: Date.now,
      handOver: async () => undefined,
      listeners: { accounts: new Set([7]) },
    },
  );
  expect(errors).toEqual([]);
  expect(messages.map(({ accountId }) => accountId)).toEqual([7, 7]);
  expect(
    messages.map((one) => one.devices.map(({ uuid, values }) => [uuid, values.length])),
  ).toEqual([
    [
      ['u1', 400],
      ['u2', 100],
    ],
    [['u2', 300]],
  ]);
  expect(messages[0]?.devices[0]?.values.slice(0, 2)).toEqual([
    ['a', 0, 1, 2],
    ['a', 1, 1],
  ]);
});
