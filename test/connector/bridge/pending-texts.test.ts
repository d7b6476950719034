import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Downlink } from '../../../src/contract/uplink.ts';
import { until } from '../harness.ts';
import { serveBroker } from './served-broker.ts';

const text = (keptId: number): Downlink => ({ topic: 'display', payload: { keptId }, keptId });
/** No matching subscribers, MQTT 5 section 2.4. */
const nobodyListens = 16;

let bridge: Awaited<ReturnType<typeof serveBroker>>;
/** How often kept texts were read. */
let asked: number;
beforeEach(async () => {
  bridge = await serveBroker();
  asked = 0;
  bridge.store.onDue = (topic) => {
    if (topic !== 'display') return [];
    asked += 1;
    return [text(1), text(2)];
  };
});
afterEach(() => bridge.close());

const measure = () => bridge.deliver(bridge.devices[0], 'measurements', { sId: '0x1', val: 1 });
const listPublished = () => bridge.published.map(({ payload }) => payload);

test('are published when the device sends, and acknowledged once the broker has them for it', async () => {
  const { store } = bridge;
  await measure();
  await until(() => store.delivered.length === 2);
  expect(listPublished()).toEqual([{ keptId: 1 }, { keptId: 2 }]);
  expect(store.delivered).toEqual([text(1), text(2)]);
});

test('stay if nobody subscribes, and are looked for again while it sends, but not with each message', async () => {
  const { answers, published, status, store, time } = bridge;
  const startMs = time.monotonicMs;
  answers.reasonCode = nobodyListens;
  await measure();
  await until(() => published.length === 1 && status.read().lastOutTs !== null);
  expect(store.delivered).toEqual([]);
  await measure();
  time.monotonicMs = startMs + 9_999;
  await measure();
  answers.reasonCode = 0;
  time.monotonicMs = startMs + 10_000;
  await measure();
  await until(() => store.delivered.length === 2);
  expect(asked).toBe(2);
  expect(listPublished()).toEqual([{ keptId: 1 }, { keptId: 1 }, { keptId: 2 }]);
});

test('that are pushed while older ones are read follow these, once', async () => {
  const { devices, published, store } = bridge;
  const push = (keptId: number) =>
    store.bus.publish('down', { uuid: devices[0].uuid, message: text(keptId) });
  const read = store.onDue;
  store.onDue = (topic) => {
    store.onDue = read;
    push(2);
    push(3);
    return read(topic);
  };
  await measure();
  await until(() => published.length === 3);
  store.bus.publish('resync', {});
  push(4);
  await until(() => published.length === 4);
  expect(listPublished()).toEqual([1, 2, 3, 4].map((keptId) => ({ keptId })));
});
