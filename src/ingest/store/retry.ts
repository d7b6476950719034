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
};

const delays = { firstMs: 40, maxMs: 1_000 };

/** What counts against the bounds: one for a batch with all its parts. */
export class Attempts {
  /** Those in a row that stored nothing. */
  failures = 0;
  #sinceMs = 0;
  readonly #bounds: RetryBounds;
  readonly #deps: AttemptDeps;

  constructor(bounds: RetryBounds, deps: AttemptDeps) {
    this.#bounds = bounds;
    this.#deps = deps;
  }

  /** Another one stored nothing. Says whether there may be a next one. */
  mayFollow(): boolean {
    if (this.failures === 0) this.#sinceMs = this.#deps.nowMs();
    this.failures += 1;
    const { attempts, forMs } = this.#bounds;
    return this.failures < attempts && this.#deps.nowMs() - this.#sinceMs < forMs;
  }

  /** Waits before the next one: longer each time, a second at most, and no longer than it may be tried. */
  async pause(stopping: AbortSignal): Promise<void> {
    const { nowMs, random } = this.#deps;
    const delayMs = backoffMs(this.failures, delays) * (0.5 + random() / 2);
    const leftMs = this.#sinceMs + this.#bounds.forMs - nowMs();
    await pause(Math.min(delayMs, leftMs), stopping);
  }
}

const expectedForMs = 10_000;

/** Whether batches may hold what is stored already, or another value in its millisecond. */
export type Redeliveries = {
  areExpected(): boolean;
  /** A batch held such a thing. */
  met(): void;
};

/**
 * Redeliveries are rare, and cluster: after reconnects, and where clocks stand still. So batches are written
 * as if there were none; after a unique violation, with ON CONFLICT for ten seconds.
 */
export function createRedeliveries(now: () => number): Redeliveries {
  let untilMs = -Infinity;
  return {
    areExpected: () => now() < untilMs,
    met() {
      untilMs = now() + expectedForMs;
    },
  };
}
