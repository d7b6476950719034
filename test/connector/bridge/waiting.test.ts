import { expect, test } from 'vitest';
import { createArrivals } from '../../../connector/bridge/bridge.ts';
import { createStore } from '../store.ts';

test('an account that sends too much through a broker delays nobody: its events are left out', async () => {
  const { store, ports } = createStore();
  const [busy, other] = [store.addDevice(1), store.addDevice(2)];
  other.identity.accountId = 2;
  const told: string[] = [];
  const arrivals = createArrivals({
    ports: {
      ...ports,
      identify: async (uuid) => (uuid === busy.uuid ? busy : other).identity,
      throttle: {
        waitMs: (accountId) => (accountId === 1 ? 1_000_000 : 0),
        waits: (_device, topic) => void told.push(topic),
      },
    },
    rejectionsPerMessage: 10,
    observe: { messages: new Map() },
    log: { info() {}, warn() {}, error() {} },
    now: () => 0,
    status: { refused() {} },
    onHeard() {},
    stopping: new AbortController().signal,
  });
  const topicOf = ({ uuid }: typeof busy) => `devices/${uuid}/up/measurements`;
  const send = (device: typeof busy) =>
    new Promise<void>((resolve, reject) => {
      const payload = Buffer.from(JSON.stringify({ sId: '0x1', val: 1 }));
      arrivals.accept(topicOf(device), payload, resolve, reject);
    });
  await Promise.all([send(busy), send(other), send(busy)]);
  const left = store.stored.map(({ device, uplink }) => [device.deviceId, uplink.leavesEventsOut]);
  expect(left.toSorted()).toEqual([
    [1, true],
    [1, true],
    [2, undefined],
  ]);
  expect(told).toEqual([topicOf(busy), topicOf(busy)]);
  await store.bus.close();
});
