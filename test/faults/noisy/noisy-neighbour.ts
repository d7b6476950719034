import { setTimeout as delay } from 'node:timers/promises';
import { findFreePort } from '../../../src/db/embedded/cluster.ts';
import { expectHolds, settleMemory } from '../fault.ts';
import type { Fault } from '../fault.ts';
import type { World } from '../world.ts';
import { brokenBounds, observe } from './bounds.ts';
import type { NoisyKind } from './kind.ts';
import { measure } from './meter.ts';
import { startNoise, type Noise, type NoiseProcess } from './noise.ts';
import type { NoiseReport } from './noise-process.ts';
import { sizeAfterVacuum } from './tables.ts';
import type { Target } from './target.ts';
import type { Turn } from './turns.ts';

/** An address of 127.0.0.0/8 that nothing else uses. */
const enemyAddress = '127.0.0.66';
/** Where the same noise comes from before, so that memory is compared with what was needed already. */
const warmUpAddress = '127.0.0.67';
const warmUpSeconds = 5;
/** What is kept this long after the noise is kept for good. */
const keptAfterSeconds = 30;
/** The shortest noise after which the memory is measured. */
const keptFromSeconds = 15;
/** A quiet phase is a third of the noise. That is enough to know what a quiet machine does. */
const quietPart = 1 / 3;

export type NoisyFaultOptions = {
  receiverPort?: number;
  /** A process for this kind, started before. */
  noise?: NoiseProcess;
  /** Called with what the noise did. */
  onReport?: (report: string) => void;
  /** If there is more than one world, waits until no other one measures. */
  turn?: Turn;
};

/** One account attacks, after a quiet phase that measures the same load without it. */
export function noisyNeighbour(kind: NoisyKind, options: NoisyFaultOptions = {}): Fault {
  return {
    name: `noisy-neighbour ${kind.name}`,
    promise: kind.says,
    short: { times: 1, awaySeconds: 10 },
    long: { times: 1, awaySeconds: 30 },
    breaks: brokenBounds,
    inflict: async (world, { awaySeconds }) => {
      const target = {
        url: world.service.url,
        mqttPort: world.service.mqttPort,
        databaseUrl: world.cluster.url(),
        receiverPort: options.receiverPort ?? (await findFreePort()),
      };
      const isKeptMeasured = kind.keptMb !== undefined && awaySeconds >= keptFromSeconds;
      const warmBytes = isKeptMeasured ? await warmUp(world, kind, target) : 0;
      const noise = await (options.noise ?? startNoise(kind.name)).setUp({
        ...target,
        address: enemyAddress,
        seconds: awaySeconds,
      });
      try {
        await settleMemory(world, Math.min(5, awaySeconds / 4));
        const endTurn = await (options.turn?.() ?? (() => undefined));
        const seen = await measureBoth(world, noise, awaySeconds, endTurn).finally(endTurn);
        const { report, noisy, quiet, first, before, after } = seen;
        const others = ((before - first) / Math.max(1, quiet.acknowledged)) * noisy.acknowledged;
        options.onReport?.(describe(report, noisy.refusals));
        const kept = isKeptMeasured && {
          mb: Math.round(((await bytesLater(world)) - warmBytes) / 1_048_576),
          mostMb: kind.keptMb ?? 0,
        };
        return observe({
          quiet,
          noisy,
          noise: report,
          grownBytes: Math.max(0, after - before - Math.max(0, others)),
          quotaBytes: kind.quotaBytes?.(awaySeconds) ?? 0,
          memoryMb: kind.memoryMb,
          kept: kept || undefined,
          readMs: kind.readMs,
          livezMs: kind.livezMs,
        });
      } finally {
        await noise.close();
      }
    },
  };
}

/** Some seconds of the same noise. Returns how much memory the service has long after that. */
async function warmUp(
  world: World,
  kind: NoisyKind,
  target: Omit<Target, 'address' | 'seconds'>,
): Promise<number> {
  const noise = await startNoise(kind.name).setUp({
    ...target,
    address: warmUpAddress,
    seconds: warmUpSeconds,
  });
  try {
    noise.start();
    await untilOver(world, warmUpSeconds);
    await noise.stop();
  } finally {
    await noise.close();
  }
  return bytesLater(world);
}

/** How much memory the service has some time after the noise. */
async function bytesLater(world: World): Promise<number> {
  await delay(keptAfterSeconds * 1_000);
  expectHolds(world.service.isRunning(), `the service lives: ${tail(world)}`);
  return world.service.residentBytes();
}

/**
 * The same load without noise and with it, and the sizes of the tables before, between and after. Calls `onSilence` as
 * soon as the noise is over. Throws if the service or the noise ended early.
 */
async function measureBoth(world: World, noise: Noise, seconds: number, onSilence: () => void) {
  const first = await sizeAfterVacuum(world.cluster.url());
  const quiet = await measure(world, () => delay(seconds * quietPart * 1_000));
  const before = await sizeAfterVacuum(world.cluster.url());
  let said: NoiseReport | null = null;
  const noisy = await measure(world, async () => {
    noise.start();
    await untilOver(world, seconds);
    const stopped = noise.stop();
    onSilence();
    said = await stopped;
  });
  expectHolds(world.service.isRunning(), `the service lives: ${tail(world)}`);
  const after = await sizeAfterVacuum(world.cluster.url());
  const report = said as NoiseReport | null;
  if (report === null) throw new Error('The noise reported nothing.');
  if (report.ended !== null) throw new Error(`The noise ended early: ${report.ended}`);
  return { first, quiet, before, noisy, after, report };
}

/** Waits until the noise is over, or the service has died of it. */
async function untilOver(world: World, seconds: number): Promise<void> {
  const died = world.service.ended();
  const over = new AbortController();
  const time = delay(seconds * 1_000, undefined, { signal: over.signal }).catch(() => undefined);
  await Promise.race([time, died]);
  over.abort();
}

const tail = (world: World) => world.service.log().split('\n').slice(-12).join('\n');

function describe({ counts }: NoiseReport, refusals: string[]): string {
  const did = Object.entries(counts).map(([what, times]) => `${what} × ${times}`);
  return [`did: ${did.join(', ')}`, refusals.length > 0 ? `others: ${refusals.join(', ')}` : []]
    .flat()
    .join('; ');
}
