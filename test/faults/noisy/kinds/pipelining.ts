import type { NoisyKind } from '../kind.ts';
import { enough } from '../workers.ts';

const connections = 50;
const requestsAWrite = 2_000;

/** Requests of nobody, which no account's rate counts, written before any is answered. */
export const pipelining: NoisyKind = {
  name: 'pipelining',
  says: '50 connections that write 2,000 requests at once, with and without a token',
  setUp: async (enemy) => {
    const port = Number(new URL(enemy.url).port);
    const token = `Authorization: Bearer ${enemy.account.token}\r\n`;
    const request = (n: number) =>
      `GET ${n % 2 === 0 ? '/v2/status' : '/v2/devices'} HTTP/1.1\r\nHost: x\r\n` +
      `${n % 2 === 0 ? '' : token}\r\n`;
    const requests = Array.from({ length: requestsAWrite }, (_, n) => request(n)).join('');
    return async (signal) => {
      const open = () => {
        if (signal.aborted) return;
        const socket = enemy.dial(port).resume();
        const write = () => {
          enemy.tally.count('asked', requestsAWrite);
          if (!signal.aborted && !socket.destroyed)
            socket.write(requests, () => setTimeout(write, 50));
        };
        write();
        socket.once('close', () => setTimeout(open, 100).unref());
      };
      for (let n = 0; n < connections; n++) open();
      await enough(signal);
    };
  },
};
