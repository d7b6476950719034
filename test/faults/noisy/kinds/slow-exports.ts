import { createBefore } from '../before.ts';
import { registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { sendOnce } from '../send-once.ts';
import { pause, work } from '../workers.ts';

const [deviceCount, rows, readers] = [10, 50_000, 16];

/** Of many devices at once, over all times; a reader takes 64 KiB, waits, and goes when it has had enough. */
export const slowExports: NoisyKind = {
  name: 'slow-exports',
  says: '16 readers that take exports of 500,000 measurements of ten devices slowly, and 4 that take them fast',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, deviceCount);
    for (const device of devices) {
      await sendOnce(enemy, device, 'measurements', { sId: '0x01', val: 1 });
      await createBefore(enemy).addMeasurements(device.uuid, rows);
    }
    const path = `/v2/measurements?devices=${devices.map(({ uuid }) => uuid).join(',')}&start=0`;
    const port = Number(new URL(enemy.url).port);
    const asked =
      `GET ${path} HTTP/1.1\r\nHost: x\r\nAccept: application/x-ndjson\r\n` +
      `Authorization: Bearer ${enemy.account.token}\r\n\r\n`;
    const readSlowly = async (signal: AbortSignal) => {
      const socket = enemy.dial(port).on('data', () => socket.pause());
      socket.write(asked);
      enemy.tally.count('slow readers');
      for (let read = 0; read < 40 && !signal.aborted && !socket.closed; read += 1) {
        socket.pause();
        await pause(100, signal);
        socket.resume();
      }
      socket.destroy();
    };
    return async (signal) => {
      await Promise.all([
        work(readers, signal, () => readSlowly(signal)),
        work(4, signal, () => enemy.ask('GET', path, { isDiscarded: true })),
      ]);
    };
  },
};
