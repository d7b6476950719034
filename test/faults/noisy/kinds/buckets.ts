import { createBefore } from '../before.ts';
import { registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { sendOnce } from '../send-once.ts';
import { work } from '../workers.ts';

/** The list of senses is as long as a request may be. */
const senses = Array.from({ length: 900 }, (_, n) => `0x${n.toString(16)}`).join();

export const buckets: NoisyKind = {
  name: 'buckets',
  says: 'buckets of a second over 90 days, and of 900 senses at once',
  async setUp(enemy) {
    const [device] = await registerDevices(enemy, 1);
    if (!device) throw new Error('There is no device.');
    await sendOnce(enemy, device, 'measurements', { sId: '0x01', val: 1 });
    await createBefore(enemy).addMeasurements(device.uuid, 200_000);
    const path = `/v2/measurements/${device.uuid}`;
    const queries = ['?bucket=1s', `?bucket=1h&senses=${senses}`, '?bucket=7s&limit=1'];
    return (signal) =>
      work(12, signal, (worker) =>
        enemy.ask('GET', path + (queries[worker % queries.length] ?? ''), { isDiscarded: true }),
      );
  },
};
