// A connector with a store that stores nothing, in a process of its own so that its memory can be measured.
import { tuneCollector } from '../../src/process/v8.ts';
import { startWorld } from './harness.ts';

export type Command = { kind: 'hold' } | { kind: 'release' } | { kind: 'report' };
export type Report = { rss: number; connections: number; held: number; stored: number };

tuneCollector();
const devices = Number(process.argv[2]);
const world = await startWorld({
  limits: { connectsPerSecond: 100_000, connectingPerAddress: 10_000, waitingPerAddress: 20_000 },
});
// One account alone would leave a third of the budget to others.
for (let n = 1; n <= devices; n++) world.store.addDevice(n, n % 50);

process.on('message', ({ kind }: Command) => {
  if (kind === 'hold') world.store.isHolding = true;
  if (kind === 'release') world.store.release();
  const report: Report = {
    rss: process.memoryUsage.rss(),
    connections: world.connector.snapshot().connections,
    held: world.store.held.length,
    stored: world.store.stored.length,
  };
  process.send?.(report);
});
process.on('disconnect', () => process.exit());
process.send?.({ port: world.port });
