import type { NoisyKind } from '../kind.ts';
import { work } from '../workers.ts';

/** Paths that differ, which a table of metrics by path must not keep, and headers as large as they may be. */
export const unknownPaths: NoisyKind = {
  name: 'unknown-paths',
  says: 'a path of its own, a token of its own and 12 kB of headers in each request',
  setUp: async (enemy) => {
    const headers = { 'X-Noise': 'x'.repeat(12_000) };
    return (signal) =>
      work(64, signal, (worker, turn) =>
        enemy.ask('GET', `/v2/${worker}/${turn}?${turn}`, { token: `no.${turn}.token`, headers }),
      );
  },
};
