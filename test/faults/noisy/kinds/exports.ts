import { createBefore } from '../before.ts';
import { registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { sendOnce } from '../send-once.ts';
import { work } from '../workers.ts';

const rows = 300_000;

export const exports_: NoisyKind = {
  name: 'exports',
  says: '16 exports of 300,000 measurements at once, as CSV and in buckets of 30 s',
  async setUp(enemy) {
    const [device] = await registerDevices(enemy, 1);
    if (!device) throw new Error('There is no device.');
    await sendOnce(enemy, device, 'measurements', { sId: '0x01', val: 1 });
    await createBefore(enemy).addMeasurements(device.uuid, rows);
    const path = `/v2/measurements/${device.uuid}`;
    const headers = { Accept: 'text/csv' };
    return (signal) =>
      work(16, signal, (worker) =>
        enemy.ask('GET', worker % 2 === 0 ? path : `${path}?bucket=30s`, {
          headers,
          isDiscarded: true,
        }),
      );
  },
};
