import { expect, test } from 'vitest';
import { createArrivals } from '../../../connector/bridge/bridge.ts';
import { createStore } from '../store.ts';

test('each device behind a broker is told of unknown members once an hour', async () => {
  const { store, ports } = createStore();
  const [one, other] = [store.addDevice(1), store.addDevice(2)];
  let monotonicMs = 5;
  const arrivals = createArrivals({
    ports: {
      ...ports,
      identify: async (uuid) => (uuid === one.uuid ? one : other).identity,
    },
    rejectionsPerMessage: 10,
    observe: { messages: new Map() },
    log: { info() {}, warn() {}, error() {} },
    now: () => monotonicMs,
    status: { refused() {} },
    onHeard() {},
    stopping: new AbortController().signal,
  });
  const send = ({ uuid }: typeof one) =>
    new Promise<void>((resolve, reject) => {
      const payload = Buffer.from(JSON.stringify({ sId: '0x1', val: 1, lable: 'x' }));
      arrivals.accept(`devices/${uuid}/up/measurements`, payload, resolve, reject);
    });
  for (const [device, laterMs] of [
    [one, 0],
    [other, 1],
    [one, 3_599_998],
    [one, 1],
    [one, 0],
  ] as const) {
    monotonicMs += laterMs;
    await send(device);
  }
  const told = store.stored.map(({ device, uplink }) => [
    device.deviceId,
    uplink.rejections.map(({ reason, path }) => `${reason} ${path}`),
  ]);
  const unknown = ['unknown-member /lable'];
  expect(told).toEqual([
    [1, unknown],
    [2, unknown],
    [1, []],
    [1, unknown],
    [1, []],
  ]);
  await store.bus.close();
});
