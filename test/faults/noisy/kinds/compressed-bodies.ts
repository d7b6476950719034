import { request } from 'node:http';
import { gzipSync, brotliCompressSync } from 'node:zlib';
import type { NoisyKind } from '../kind.ts';
import { work } from '../workers.ts';

const zeros = Buffer.alloc(64 * 1_048_576, 0x20);

export const compressedBodies: NoisyKind = {
  name: 'compressed-bodies',
  says: 'bodies of a few kB that unpack to 64 MB',
  setUp: async (enemy) => {
    const bombs = { gzip: gzipSync(zeros), br: brotliCompressSync(zeros) };
    const post = (encoding: keyof typeof bombs) =>
      new Promise<void>((resolve) => {
        const sent = request(`${enemy.url}/v2/purposes`, {
          method: 'POST',
          localAddress: enemy.address,
          headers: {
            Authorization: `Bearer ${enemy.account.token}`,
            'Content-Type': 'application/json',
            'Content-Encoding': encoding,
          },
        });
        sent.on('socket', enemy.tally.watch);
        sent.on('error', () => resolve());
        sent.on('response', (response) => {
          enemy.tally.count(`HTTP ${response.statusCode}`);
          response.resume().on('close', resolve);
        });
        sent.end(bombs[encoding]);
      });
    return (signal) => work(16, signal, (worker) => post(worker % 2 === 0 ? 'gzip' : 'br'));
  },
};
