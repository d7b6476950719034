import { afterEach, beforeEach, expect, test } from 'vitest';
import { startBridgeDownlinks } from '../../../connector/bridge/bridge.ts';
import type { Downlink } from '../../../src/contract/uplink.ts';
import { until } from '../harness.ts';
import { createStore } from '../store.ts';

const text = (keptId: number): Downlink => ({ topic: 'display', payload: { keptId }, keptId });
const log = { info() {}, warn() {}, error() {} };

let bridge: ReturnType<typeof start>;
beforeEach(() => (bridge = start()));
afterEach(() => bridge.downlinks.end());

function start() {
  const { store, ports } = createStore();
  const { identity } = store.addDevice(1);
  const published: unknown[] = [];
  const time = { monotonicMs: 0 };
  const state = { doesListen: false, asked: 0 };
  store.onDue = (topic) => {
    state.asked += 1;
    return topic === 'display' ? [text(1), text(2)] : [];
  };
  const downlinks = startBridgeDownlinks({
    ports: { ...ports, identify: async () => identity },
    log,
    now: () => time.monotonicMs,
    async publish(_topic, payload) {
      published.push(JSON.parse(String(payload)));
      if (!state.doesListen) throw new Error('nobody listens');
    },
  });
  return { store, identity, published, time, state, downlinks };
}

test('are published when the device sends, and acknowledged once the broker has them for it', async () => {
  const { downlinks, identity, published, state, store } = bridge;
  state.doesListen = true;
  downlinks.heard(identity);
  await until(() => store.delivered.length === 2);
  expect(published).toEqual([{ keptId: 1 }, { keptId: 2 }]);
  expect(store.delivered).toEqual([text(1), text(2)]);
});

test('stay if nobody subscribes, and are looked for again while it sends, but not with each message', async () => {
  const { downlinks, identity, published, state, store, time } = bridge;
  downlinks.heard(identity);
  await until(() => published.length === 1);
  expect(store.delivered).toEqual([]);
  downlinks.heard(identity);
  time.monotonicMs = 9_999;
  downlinks.heard(identity);
  state.doesListen = true;
  time.monotonicMs = 10_000;
  downlinks.heard(identity);
  await until(() => store.delivered.length === 2);
  expect(state.asked).toBe(2);
  expect(published).toEqual([{ keptId: 1 }, { keptId: 1 }, { keptId: 2 }]);
});

test('that are pushed while older ones are read follow these, once', async () => {
  const { downlinks, identity, published, state, store } = bridge;
  state.doesListen = true;
  downlinks.heard(identity);
  store.bus.publish('down', { uuid: identity.uuid, message: text(2) });
  store.bus.publish('down', { uuid: identity.uuid, message: text(3) });
  await until(() => published.length === 3);
  store.bus.publish('resync', {});
  store.bus.publish('down', { uuid: identity.uuid, message: text(4) });
  await until(() => published.length === 4);
  expect(published).toEqual([1, 2, 3, 4].map((keptId) => ({ keptId })));
});
