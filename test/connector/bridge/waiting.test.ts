import { expect, onTestFinished, test } from 'vitest';
import { serveBroker } from './served-broker.ts';

test('an account that sends too much through a broker delays nobody: its events are left out', async () => {
  const told: string[] = [];
  const { devices, deliver, store, close } = await serveBroker({
    throttle: {
      waitMs: (accountId) => (accountId === 1 ? 1_000_000 : 0),
      waits: (_device, topic) => void told.push(topic),
    },
  });
  onTestFinished(close);
  const [busy, other] = devices;
  const measured = { sId: '0x1', val: 1 };
  const sent = [busy, other, busy].map((device) => deliver(device, 'measurements', measured));
  await Promise.all(sent);
  const left = store.stored.map(({ device, uplink }) => [device.deviceId, uplink.leavesEventsOut]);
  expect(left.toSorted()).toEqual([
    [1, true],
    [1, true],
    [2, undefined],
  ]);
  const topic = `devices/${busy.uuid}/up/measurements`;
  expect(told).toEqual([topic, topic]);
});
