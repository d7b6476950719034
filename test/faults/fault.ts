import { setTimeout as delay } from 'node:timers/promises';
import type { World, WorldOptions } from './world.ts';

/** How often and how long: seconds in CI, minutes by hand. */
export type Severity = {
  times: number;
  /** How long something stays away, seconds. */
  awaySeconds: number;
};

/** A fault to inject while devices send, and what it promises. */
export type Fault = {
  name: string;
  promise: string;
  short: Severity;
  long: Severity;
  world?: Partial<WorldOptions>;
  /** Nothing ends between the delivery of a message and its outcome, so none is delivered again. */
  sparesDeliveries?: true;
  /** The database, or the way to it, may break between a commit and its outcome. */
  losesOutcomes?: true;
  /** Too heavy for the quick suite. */
  longOnly?: true;
  /** The promised maximum of each observation. The oracle checks it; tests do not. */
  limits?: Observations;
  /** Returns, in words, which promises between observations did not hold. */
  breaks?: (observations: Observations) => string[];
  /** What this machine lacks for the fault, or null. */
  lacks?: () => string | null;
  /** Inflicts the fault, and returns when the service works again. Throws if a promise of its own is broken. */
  inflict(world: World, severity: Severity): Promise<Observations>;
};

/** Measured besides the verdict, for the table. A fault's `limits` bound some of them. */
export type Observations = Record<string, number>;

/** Lets the load run until this many more messages are acknowledged. */
export async function runFor(world: World, acknowledgements: number): Promise<void> {
  const goal = world.load.counts().acknowledged + acknowledgements;
  while (world.load.counts().acknowledged < goal) await world.load.nextAck();
}

/** Lets every device send twice, on average, so that caches are filled before the fault. */
export const runForAll = (world: World): Promise<void> =>
  runFor(world, Math.max(300, world.devices.length * 2));

/**
 * Lets the load run until the service's memory is stable, because a new process grows in any case. Stable means
 * `seconds` without a new maximum. Waits a minute and a half at most.
 */
export async function settleMemory(world: World, seconds: number): Promise<void> {
  const untilMs = performance.now() + 90_000;
  let most = 0;
  for (let still = 0; still < seconds && performance.now() < untilMs; still += 1) {
    const bytes = world.service.residentBytes();
    if (bytes > most * 1.01) still = 0;
    most = Math.max(most, bytes);
    await delay(1_000);
  }
}

/** Waits for the next acknowledgement. Returns how long that took, in milliseconds. */
export async function timeToAck(world: World): Promise<number> {
  const since = performance.now();
  await world.load.nextAck();
  return Math.round(performance.now() - since);
}

/** Keeps a server away for a while. Returns by how many MB the service's memory grew at most. */
export async function watchMemory(world: World, seconds: number): Promise<number> {
  const before = world.service.residentBytes();
  let most = before;
  const untilMs = performance.now() + seconds * 1_000;
  while (performance.now() < untilMs) {
    await delay(100);
    most = Math.max(most, world.service.residentBytes());
  }
  return Math.round((most - before) / 1_048_576);
}

/** The status and duration of one answer of the REST interface. */
export async function ask(world: World, path: string): Promise<{ status: number; ms: number }> {
  const since = performance.now();
  const headers = { Authorization: `Bearer ${world.accountToken}` };
  const response = await fetch(world.service.url + path, { headers });
  await response.arrayBuffer();
  return { status: response.status, ms: Math.round(performance.now() - since) };
}

export function expectHolds(holds: boolean, what: string): void {
  if (!holds) throw new Error(`Broken promise: ${what}`);
}
