import { createReadings, flood, install, registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { eventOf } from '../purposes.ts';
import { work } from '../workers.ts';

const purpose = {
  puId: 1,
  initStId: 1,
  states: [{ stId: 1, events: [eventOf(1, { eventLog: true })] }],
};

/** Each attempt begins at the oldest event there is, and is given up at its first answer. */
export const streamResumes: NoisyKind = {
  name: 'stream-resumes',
  says: 'streams that resume at the oldest of 20,000 events, again and again',
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 4);
    await install(enemy, devices, [purpose]);
    const readings = createReadings();
    const filled = AbortSignal.timeout(15_000);
    await flood(
      enemy,
      { devices, payload: (device, seq) => (seq < 50 ? readings(device, 100) : null) },
      filled,
    );
    const port = Number(new URL(enemy.url).port);
    const asked =
      'GET /v2/events/stream HTTP/1.1\r\nHost: x\r\nLast-Event-ID: 1\r\n' +
      `Authorization: Bearer ${enemy.account.token}\r\n\r\n`;
    return (signal) =>
      work(20, signal, async () => {
        const socket = enemy.dial(port);
        socket.write(asked);
        let bytes = 0;
        await new Promise<void>((resolve) => {
          socket.on('data', (chunk) => (bytes += chunk.length) > 100_000 && socket.destroy());
          socket.on('close', resolve);
          signal.addEventListener('abort', () => socket.destroy(), { once: true });
          socket.setTimeout(1_000, () => socket.destroy());
        });
        enemy.tally.count('streams');
      });
  },
};
