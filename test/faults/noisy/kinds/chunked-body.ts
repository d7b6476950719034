import { once } from 'node:events';
import type { NoisyKind } from '../kind.ts';
import { work } from '../workers.ts';

const megabyte = 1_048_576;
const head = (token: string) =>
  `POST /v2/purposes HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n` +
  'Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n';
const chunk = Buffer.concat([
  Buffer.from(`${(megabyte / 16).toString(16)}\r\n`),
  Buffer.alloc(megabyte / 16, 0x20),
  Buffer.from('\r\n'),
]);

export const chunkedBody: NoisyKind = {
  name: 'chunked-body',
  says: 'chunked bodies above 1 MiB, each followed by another request on its connection',
  setUp: async (enemy) => {
    const port = Number(new URL(enemy.url).port);
    return (signal) =>
      work(16, signal, async () => {
        const socket = enemy.dial(port).resume();
        const closed = once(socket, 'close');
        socket.write(head(enemy.account.token));
        for (let n = 0; n < 20; n++) socket.write(chunk);
        socket.write('0\r\n\r\nGET /v2/status HTTP/1.1\r\nHost: x\r\n\r\n');
        await closed;
        enemy.tally.count('closed');
      });
  },
};
