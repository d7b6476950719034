import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Downlink } from '../../../src/contract/uplink.ts';
import { until } from '../harness.ts';
import { serveBroker } from './served-broker.ts';

/** No matching subscribers, MQTT 5 section 2.4. */
const nobodyListens = 16;
const command: Downlink = {
  topic: 'command',
  payload: { commandId: 'c1', name: 'restart' },
  command: { id: 1, expiresTs: Infinity, answerMs: 60_000 },
};

let bridge: Awaited<ReturnType<typeof serveBroker>>;
beforeEach(async () => {
  bridge = await serveBroker();
  bridge.store.onDue = (topic) => (topic === 'command' ? [command] : []);
});
afterEach(() => bridge.close());

const listPublished = () => bridge.published.map(({ payload }) => payload);

test('a command that falls due is published at once, to a device that was never heard', async () => {
  const { devices, store } = bridge;
  store.bus.publish('due', { uuid: devices[0].uuid, topic: 'command' });
  await until(() => store.delivered.length === 1);
  expect(listPublished()).toEqual([command.payload]);
  expect(store.delivered).toEqual([command]);
});

test('one that nobody subscribes to is not delivered, and looked for again when the device sends', async () => {
  const { answers, devices, published, status, store } = bridge;
  answers.reasonCode = nobodyListens;
  store.bus.publish('due', { uuid: devices[0].uuid, topic: 'command' });
  await until(() => published.length === 1 && status.read().lastOutTs !== null);
  expect(store.delivered).toEqual([]);
  answers.reasonCode = 0;
  await bridge.deliver(devices[0], 'measurements', { sId: '0x1', val: 1 });
  await until(() => store.delivered.length === 1);
  expect(listPublished()).toEqual([command.payload, command.payload]);
});
