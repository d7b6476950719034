import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as delay } from 'node:timers/promises';
import type { World } from '../world.ts';
import { startPeople } from './people.ts';
import type { Answers } from './people.ts';

/** What the others noticed for a while. */
export type Phase = {
  acknowledged: number;
  ackP99Ms: number;
  livezP99Ms: number;
  livezFailed: number;
  readP99Ms: number;
  readsFailed: number;
  loginMaxMs: number;
  loginsFailed: number;
  /** The most memory that the service had. */
  residentBytes: number;
  /** By how much this process itself was late at most. A busy machine makes everything else late too. */
  ownDelayMs: number;
  /** Why people were refused, and how often. */
  refusals: string[];
};

const sampleEveryMs = 200;
const drainWithinMs = 60_000;

/** Measures while `during` runs, until everything sent meanwhile is acknowledged. */
export async function measure(world: World, during: () => Promise<void>): Promise<Phase> {
  const { load, service } = world;
  const before = load.counts().acknowledged;
  load.latency.reset();
  let residentBytes = service.residentBytes();
  const sample = setInterval(() => {
    if (service.isRunning()) residentBytes = Math.max(residentBytes, service.residentBytes());
  }, sampleEveryMs);
  const own = monitorEventLoopDelay({ resolution: 10 });
  own.enable();
  const people = startPeople(world);
  try {
    await during();
    // What was sent last, and still waits, counts for this phase.
    const goal = load.counts().sent;
    const untilMs = performance.now() + drainWithinMs;
    while (load.counts().acknowledged < goal && performance.now() < untilMs)
      await Promise.race([load.nextAck(), delay(100)]);
  } finally {
    clearInterval(sample);
    await people.stop();
    own.disable();
  }
  const { livez, reads, logins } = people;
  return {
    acknowledged: load.counts().acknowledged - before,
    ackP99Ms: Math.round(load.latency.percentile(99) / 1_000),
    livezP99Ms: percentile(livez, 0.99),
    livezFailed: livez.failed,
    readP99Ms: percentile(reads, 0.99),
    readsFailed: reads.failed,
    loginMaxMs: percentile(logins, 1),
    loginsFailed: logins.failed,
    residentBytes,
    ownDelayMs: Math.round(own.max / 1_000_000),
    refusals: [
      refusalsOf('livez', livez),
      refusalsOf('reads', reads),
      refusalsOf('logins', logins),
    ].flat(),
  };
}

function percentile({ ms }: Answers, part: number): number {
  const sorted = ms.toSorted((a, b) => a - b);
  return Math.round(sorted[Math.ceil(sorted.length * part) - 1] ?? 0);
}

const refusalsOf = (who: string, { why }: Answers) =>
  Object.entries(why).map(([status, times]) => `${who} ${status} × ${times}`);
