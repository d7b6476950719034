import { expect, onTestFinished, test } from 'vitest';
import { serveBroker } from './served-broker.ts';

test('each device behind a broker is told of unknown members once an hour', async () => {
  const { devices, deliver, store, time, close } = await serveBroker();
  onTestFinished(close);
  const [one, other] = devices;
  for (const [device, laterMs] of [
    [one, 0],
    [other, 1],
    [one, 3_599_998],
    [one, 1],
    [one, 0],
  ] as const) {
    time.monotonicMs += laterMs;
    await deliver(device, 'measurements', { sId: '0x1', val: 1, lable: 'x' });
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
});
