import type { NoisyKind } from '../kind.ts';
import { work } from '../workers.ts';

const far = '9'.repeat(15);
const open = Array.from({ length: 700 }, (_, n) => n * 2 + 1).join(',');

/** Ids of a stream that are far ahead, of another server, as long as a header may be, or none at all. */
const ids = [
  `${far}.1:${far}:`,
  `1.1:1:.${'f'.repeat(32)}`,
  `1.1:1401:${open}`,
  `${far}.${far}:${far}:.0`,
  'x'.repeat(8_000),
  '1'.repeat(8_000),
];

export const farResumes: NoisyKind = {
  name: 'far-resumes',
  says: 'streams that resume where no stream was: ahead, elsewhere, with 700 open transactions, with ids of 8 KB',
  setUp: async (enemy) => {
    const port = Number(new URL(enemy.url).port);
    return (signal) =>
      work(40, signal, async (worker, turn) => {
        const socket = enemy.dial(port);
        socket.write(
          `GET /v2/events/stream HTTP/1.1\r\nHost: x\r\nLast-Event-ID: ${ids[(worker + turn) % ids.length]}\r\n` +
            `Authorization: Bearer ${enemy.account.token}\r\n\r\n`,
        );
        await new Promise<void>((resolve) => {
          socket.once('data', () => socket.destroy());
          socket.once('close', () => resolve());
          signal.addEventListener('abort', () => socket.destroy(), { once: true });
          socket.setTimeout(1_000, () => socket.destroy());
        });
        enemy.tally.count('streams');
      });
  },
};
