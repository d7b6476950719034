import { flood, registerDevices } from '../devices.ts';
import type { NoisyKind } from '../kind.ts';
import { work } from '../workers.ts';

const deep = (depth: number) => '['.repeat(depth) + ']'.repeat(depth);
const wide = (bytes: number) => `[${'[],'.repeat(bytes / 3)}[]]`;
const keys = (count: number) =>
  JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, {}])));

export const deepJson: NoisyKind = {
  name: 'deep-json',
  says: 'nested arrays and thousands of keys, over MQTT and in bodies of 1 MB',
  quotaBytes: () => 10 * 2 * 1_048_576,
  async setUp(enemy) {
    const devices = await registerDevices(enemy, 10);
    const payloads = [deep(30_000), wide(60_000), keys(5_000)];
    const bodies = [deep(500_000), wide(1_000_000), keys(60_000)];
    return async (signal) => {
      await Promise.all([
        flood(
          enemy,
          { devices, payload: (device, seq) => payloads[(device + seq) % 3] ?? null },
          signal,
        ),
        work(8, signal, (worker, turn) =>
          enemy.ask('POST', '/v2/purposes', { body: bodies[(worker + turn) % 3] }),
        ),
      ]);
    };
  },
};
