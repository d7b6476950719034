import { randomBytes } from 'node:crypto';
import type { NoisyKind } from '../kind.ts';
import { enough, pause } from '../workers.ts';

const connections = 500;
const upgrade =
  'GET /mqtt HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
  'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: mqtt\r\nSec-WebSocket-Key: ';
/** Masked frames with a mask of zeros: fragments of one byte of a message without an end, and pings. */
const fragments = Buffer.concat(
  Array.from({ length: 2_000 }, () =>
    Buffer.from([0x02, 0x81, 0, 0, 0, 0, 0x10, 0x89, 0x80, 0, 0, 0, 0]),
  ),
);

export const websockets: NoisyKind = {
  name: 'websockets',
  says: '500 WebSockets that send fragments and pings instead of a CONNECT',
  setUp: async (enemy) => {
    const port = Number(new URL(enemy.url).port);
    return async (signal) => {
      const open = (n: number) => {
        if (signal.aborted) return;
        const socket = enemy.dial(port).resume();
        enemy.tally.count('opened');
        socket.write(`${upgrade}${randomBytes(16).toString('base64')}\r\n\r\n`);
        socket.once('data', () => socket.write(fragments));
        socket.once('close', () => setTimeout(open, 50, n).unref());
      };
      for (let n = 0; n < connections && !signal.aborted; n++) {
        open(n);
        if (n % 50 === 49) await pause(20, signal);
      }
      await enough(signal);
    };
  },
};
