import { expect } from 'vitest';
import type { App } from './app.ts';
import type { TestDevice } from './device.ts';

/** Sends two measurements with an unknown member, and expects one error and both to be stored. */
export async function expectToldOnce(app: App, device: TestDevice): Promise<void> {
  await device.subscribe('down/errors');
  for (const val of [1, 2])
    await device.publish('up/measurements', { sId: '0x01', val, ts: Date.now() + val, lable: 'x' });
  expect(await device.receive('down/errors')).toMatchObject({
    topic: `devices/${device.uuid}/up/measurements`,
    reason: 'unknown-member',
    path: '/lable',
    message: expect.stringContaining('unknown member lable'),
    ts: expect.any(Number),
  });
  // Other errors are reported all the same, and after anything else that was to be reported.
  await device.publish('up/measurements', { sId: '0x99', val: 1, lable: 'x' });
  expect(await device.receive('down/errors')).toMatchObject({ reason: 'unknown-sense' });
  expect(device.received).toEqual([]);
  const path = `/v2/measurements/${device.uuid}?limit=10`;
  const { measurements } = await app.call<{ measurements: { val: number }[] }>('GET', path);
  expect(measurements.map(({ val }) => val).toSorted()).toEqual([1, 2]);
}
