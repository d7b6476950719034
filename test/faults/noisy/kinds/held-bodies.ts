import type { NoisyKind } from '../kind.ts';
import { enough, pause } from '../workers.ts';

const connections = 600;
const bytes = 1_048_000;

/** No account is needed: a login, all of whose body but the last byte has come. */
export const heldBodies: NoisyKind = {
  name: 'held-bodies',
  says: '600 logins with a body of 1 MB whose last byte does not come',
  setUp: async (enemy) => {
    const port = Number(new URL(enemy.url).port);
    const request = Buffer.concat([
      Buffer.from(
        'POST /v2/accounts/login HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n' +
          `Content-Length: ${bytes}\r\n\r\n`,
      ),
      Buffer.alloc(bytes - 1, 0x20),
    ]);
    return async (signal) => {
      const open = () => {
        if (signal.aborted) return;
        const socket = enemy.dial(port).resume();
        enemy.tally.count('opened');
        socket.write(request);
        socket.once('close', () => setTimeout(open, 100).unref());
      };
      for (let n = 0; n < connections && !signal.aborted; n++) {
        open();
        if (n % 20 === 19) await pause(20, signal);
      }
      await enough(signal);
    };
  },
};
