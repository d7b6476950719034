import type { NoisyKind } from '../kind.ts';
import { enough, pause } from '../workers.ts';

const connections = 6_000;
const asked = 'GET /v2/status HTTP/1.1\r\nHost: x\r\n\r\n';

export const httpConnections: NoisyKind = {
  name: 'http-connections',
  says: '6,000 HTTP connections that have asked once and stay',
  setUp: async (enemy) => {
    const port = Number(new URL(enemy.url).port);
    return async (signal) => {
      const open = () => {
        if (signal.aborted) return;
        const socket = enemy.dial(port).resume();
        enemy.tally.count('opened');
        socket.write(asked);
        socket.once('close', () => setTimeout(open, 200).unref());
      };
      for (let n = 0; n < connections && !signal.aborted; n++) {
        open();
        if (n % 100 === 99) await pause(20, signal);
      }
      await enough(signal);
    };
  },
};
