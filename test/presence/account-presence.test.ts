import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createLocalBus } from '../../src/bus/bus.ts';
import { createPresenceSource } from '../../src/presence/presence.ts';
import type { Reach } from '../../src/streams/reach.ts';
import { SubscriberBudget } from '../../src/streams/subscriber.ts';

beforeEach(
  () =>
    void vi.useFakeTimers({
      toFake: ['setTimeout', 'clearTimeout', 'setInterval', 'clearInterval'],
    }),
);
afterEach(() => void vi.useRealTimers());

const accountId = 1;
const all: Reach = {
  key: 'all',
  accountId,
  ids: () => null,
  has: () => true,
  refresh: async () => undefined,
};
const sighting = (deviceId: number, connected: boolean) => ({
  deviceId,
  uuid: `device ${deviceId}`,
  connected,
  connectorId: 1,
  seenTs: 1,
});

/** The messages of a stream of the account, as their names and contents. */
async function follow() {
  let monotonicMs = 0;
  const bus = createLocalBus({
    onListenerError: (error) => {
      throw error;
    },
  });
  const open = createPresenceSource({
    bus,
    heartbeatMs: 15_000,
    monotonicClock: () => monotonicMs,
    budget: new SubscriberBudget(1_048_576),
    isIntermittent: () => false,
  });
  const asked = { kinds: new Set(['devices' as const]), senses: undefined, maxHz: undefined };
  const source = await open({ ...asked, reach: all, from: null });
  const messages: string[] = [];
  const reading = (async () => {
    for await (const { bytes } of source.pieces(new AbortController().signal))
      for (const [, name, data] of bytes.toString().matchAll(/event: (.+)\ndata: (.+)\n/g))
        messages.push(`${name} ${data}`);
  })();
  return {
    messages,
    /** Writes devices 0 to `count` at once, as a connector does. */
    write(connected: boolean, count: number) {
      const devices =
        count > 100 ? null : Array.from({ length: count }, (_, id) => sighting(id, connected));
      bus.publish('presence', { accounts: [{ accountId, devices }] });
    },
    change: () => bus.publish('fleet', { accountId }),
    resync: () => bus.publish('resync', {}),
    async pass(ms: number) {
      for (let passed = 0; passed < ms; passed += 100) {
        monotonicMs += 100;
        await vi.advanceTimersByTimeAsync(100);
      }
    },
    async end() {
      source.leave();
      await reading;
    },
  };
}

test('reports a device at once, and then once a second, in its present state', async () => {
  const stream = await follow();
  stream.write(true, 1);
  await stream.pass(100);
  expect(stream.messages).toHaveLength(1);
  for (let i = 0; i < 8; i += 1) {
    stream.write(i % 2 === 1, 1);
    await stream.pass(100);
  }
  expect(stream.messages).toHaveLength(1);
  await stream.pass(200);
  expect(stream.messages.map((text) => /"presence":"(\w+)"/.exec(text)?.[1])).toEqual([
    'online',
    'online',
  ]);
  await stream.end();
});

test('10,000 devices that all return cost a message in two seconds', async () => {
  const stream = await follow();
  for (let second = 0; second < 20; second += 1) {
    stream.write(second % 2 === 0, 10_000);
    await stream.pass(1_000);
  }
  expect(new Set(stream.messages)).toEqual(new Set(['devices {"reason":"many"}']));
  expect(stream.messages.length).toBeGreaterThan(1);
  expect(stream.messages.length).toBeLessThanOrEqual(11);
  await stream.pass(2_000);
  const { length } = stream.messages;
  // Afterwards each is reported again.
  stream.write(true, 2);
  await stream.pass(100);
  expect(stream.messages.slice(length)).toHaveLength(2);
  await stream.end();
});

test('devices of several connectors together are too many, and a missed message takes precedence', async () => {
  const stream = await follow();
  stream.write(true, 1);
  await stream.pass(100);
  for (let connector = 0; connector < 3; connector += 1) stream.write(true, 60);
  await stream.pass(1_000);
  // The same 60 are sent once each.
  expect(stream.messages).toHaveLength(61);
  stream.resync();
  stream.change();
  stream.write(true, 101);
  await stream.pass(1_000);
  expect(stream.messages.slice(61)).toEqual(['devices {"reason":"missed"}']);
  await stream.end();
});
