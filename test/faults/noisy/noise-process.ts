import { setPriority } from 'node:os';
import { createEnemy } from './enemy.ts';
import type { Target } from './target.ts';
import { getKind } from './kinds.ts';

/** What the parent process sends, and receives. */
export type ToNoise = { setUp: Target; kind: string } | 'start' | 'stop';
export type FromNoise = 'ready' | { failed: string } | NoiseReport;
export type NoiseReport = {
  bytesSent: number;
  counts: Record<string, number>;
  /** Processor time of the noise's own process. */
  cpuMs: number;
  /** What ended the noise early, or null. */
  ended: string | null;
};

/** How long the noise may take to notice that it is over. */
const endWithinMs = 2_000;

// The service, its database and the measuring process share the processors with this one.
setPriority(10);

const tell = (message: FromNoise) => void process.send?.(message);
const stop = new AbortController();
const next = () => new Promise<ToNoise>((resolve) => process.once('message', resolve));
process.once('disconnect', () => process.exit());

async function run(): Promise<void> {
  const first = await next();
  if (typeof first === 'string') throw new Error('Nothing was said about what to do.');
  const enemy = await createEnemy(first.setUp);
  const makeNoise = await getKind(first.kind).setUp(enemy);
  const started = next();
  tell('ready');
  await started;
  const stopped = next().then(() => stop.abort());
  enemy.tally.reset();
  const cpu = process.cpuUsage();
  let ended: string | null = null;
  const noise = makeNoise(stop.signal).catch((error: unknown) => {
    // Connections that are torn down at the end may cause errors.
    if (!stop.signal.aborted) ended = String(error);
  });
  await stopped;
  await Promise.race([noise, new Promise((resolve) => setTimeout(resolve, endWithinMs))]);
  const { user, system } = process.cpuUsage(cpu);
  tell({ ...enemy.tally.read(), cpuMs: Math.round((user + system) / 1_000), ended });
  enemy.tally.closeSockets();
}

run()
  .catch((error: unknown) => tell({ failed: String(error) }))
  .finally(() => process.disconnect());
