import { backoffMs, pause } from '../../lib/wait.ts';

/** How often, and for how long, the messages of a batch are tried again before they fail. */
export type RetryBounds = {
  /** Transactions in a row that stored nothing. */
  attempts: number;
  /** Since the first of them, in milliseconds. */
  forMs: number;
};

/**
 * Long enough for a database that starts anew or fails over, and for another process that has the same
 * devices; short enough that neither messages nor their connections pile up. Devices send again what
 * failed. (MQTT connections give up before: `mqtt.storeTimeoutMs`.)
 */
export const retryBounds: RetryBounds = { attempts: 100, forMs: 30_000 };

export type AttemptDeps = {
  /** Milliseconds that only go forward. */
  nowMs: () => number;
  /** 0 to 1: spreads retries. */
  random: () => number;
  retry: RetryBounds;
  /** The service stops: nothing is tried again. */
  stopping: AbortSignal;
};

const delays = { firstMs: 40, maxMs: 1_000 };

/** What counts against the bounds: one for a batch with all its parts. */
export type Attempts = {
  /** Those in a row that stored nothing. */
  failures: number;
  /** When the first of them failed, ms of `AttemptDeps.nowMs`. */
  sinceMs: number;
};

/** Another one stored nothing. Says whether there may be a next one. */
export function mayFollow(
  attempts: Attempts,
  { nowMs, retry }: Pick<AttemptDeps, 'nowMs' | 'retry'>,
): boolean {
  if (attempts.failures === 0) attempts.sinceMs = nowMs();
  attempts.failures += 1;
  return attempts.failures < retry.attempts && nowMs() - attempts.sinceMs < retry.forMs;
}

/** Waits before the next one: longer each time, a second at most, and no longer than it may be tried. */
export async function pauseBeforeNext(
  { failures, sinceMs }: Attempts,
  { nowMs, random, retry, stopping }: AttemptDeps,
): Promise<void> {
  const delayMs = backoffMs(failures, delays) * (0.5 + random() / 2);
  await pause(Math.min(delayMs, sinceMs + retry.forMs - nowMs()), stopping);
}

/**
 * Until when batches may hold what is stored already, or another value in its millisecond; ms of `AttemptDeps.nowMs`.
 * Redeliveries are rare, and cluster: after reconnects, and where clocks stand still. So batches are written
 * as if there were none; after a unique violation, with ON CONFLICT for ten seconds.
 */
export type Redeliveries = { untilMs: number };

const expectedForMs = 10_000;

/** A batch held such a thing. */
export function noteRedelivery(redeliveries: Redeliveries, nowMs: number): void {
  redeliveries.untilMs = nowMs + expectedForMs;
}
