import type { NoisyKind } from '../kind.ts';
import { enough, pause } from '../workers.ts';

const connections = 2_000;

/** Half of them send headers byte by byte, half of them a body that never ends. */
export const slowHttp: NoisyKind = {
  name: 'slow-http',
  says: '2,000 HTTP connections whose requests never come to an end',
  setUp: async (enemy) => {
    const port = Number(new URL(enemy.url).port);
    const starts = [
      'GET /v2/devices HTTP/1.1\r\nHost: x\r\nX-A: ',
      'POST /v2/purposes HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n' +
        `Authorization: Bearer ${enemy.account.token}\r\nContent-Length: 1000000\r\n\r\n{`,
    ];
    return async (signal) => {
      const open = new Set<ReturnType<typeof enemy.dial>>();
      const dial = (n: number) => {
        if (signal.aborted) return;
        const socket = enemy.dial(port).resume();
        enemy.tally.count('opened');
        open.add(socket);
        socket.write(starts[n % 2] ?? '');
        socket.once('close', () => {
          open.delete(socket);
          setTimeout(dial, 100, n).unref();
        });
      };
      for (let n = 0; n < connections && !signal.aborted; n++) {
        dial(n);
        if (n % 100 === 99) await pause(20, signal);
      }
      while (!signal.aborted) {
        for (const socket of open) socket.write('x');
        await pause(2_000, signal);
      }
      await enough(signal);
    };
  },
};
