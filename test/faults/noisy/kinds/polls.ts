import type { Socket } from 'node:net';
import { registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { enough, pause } from '../workers.ts';

const connections = 10_000;
const deviceCount = 100;
/** As many of one address as the service takes. */
const perAddress = 2_000;

/** More of a device's polls than two end each other: those that are answered ask again at once. */
export const polls: NoisyKind = {
  name: 'polls',
  says: '10,000 polls of 100 devices at once, each asked again when it is answered',
  // Ten thousand requests that wait.
  memoryMb: 250,
  async setUp(enemy) {
    const port = Number(new URL(enemy.url).port);
    const devices = await registerDevices(enemy, deviceCount);
    return async (signal) => {
      const sockets: Socket[] = [];
      for (let n = 0; n < connections && !signal.aborted; n += 1) {
        const { uuid, token } = devices[n % deviceCount] ?? { uuid: '', token: '' };
        const request =
          `GET /devices/${uuid}/down?wait=60&topics=display HTTP/1.1\r\nHost: x\r\n` +
          `Authorization: Bearer ${token}\r\n\r\n`;
        const address = n < perAddress ? undefined : `127.0.9.${Math.floor(n / perAddress)}`;
        const socket = enemy.dial(port, address);
        sockets.push(socket);
        const ask = (): void => {
          if (signal.aborted || socket.destroyed) return;
          enemy.tally.count('polls');
          socket.write(request);
        };
        socket.once('connect', ask).on('data', () => void setTimeout(ask, 10).unref());
        if (n % 50 === 49) await pause(20, signal);
      }
      await enough(signal);
      for (const socket of sockets) socket.destroy();
    };
  },
};
