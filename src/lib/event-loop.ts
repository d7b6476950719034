import { setImmediate as immediate } from 'node:timers/promises';
import { monotonicClock } from './clock.ts';
import { type Asker, FairQueue } from './fair-queue.ts';

/** Lets others have their turn of the event loop. */
export async function yieldToEventLoop(): Promise<void> {
  await immediate();
}

/** Each of them is ten or twenty microseconds of work. */
const visitedAtOnce = 100;

/** Visits the things that are there now one after the other; where there are thousands, others have their turn. */
export async function forEachYielding<T>(
  things: Iterable<T>,
  visit: (thing: T) => void,
): Promise<void> {
  for (const [index, thing] of Array.from(things).entries()) {
    if (index > 0 && index % visitedAtOnce === 0) await yieldToEventLoop();
    visit(thing);
  }
}

type LoopSchedulerOptions = {
  /** What may be done in a turn of the event loop. The unit is the caller's: requests, or what they cost. */
  perTurn: number;
  /** What waits is worked on no longer in a turn, whatever it costs by the caller's count; absent: as long as that allows. */
  mostMs?: number;
  /** With so many waiting the next ones begin after a pause, which leaves time to everybody else. */
  crowd?: { size: number; pauseMs: number };
};

/**
 * Spreads work over turns of the event loop. A turn reads every socket that has something, so without a bound all
 * of that would be worked on before anybody else is. What is beyond the bound waits, and addresses take turns.
 */
export class LoopScheduler {
  readonly #options: LoopSchedulerOptions;
  readonly #turns = new FairQueue<() => number | void>();
  #spent = 0;
  #isScheduled = false;

  constructor(options: LoopSchedulerOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#turns.waiting;
  }

  /** Whether something may be done at once, at this cost: never before others that wait. */
  takeNow(cost = 1): boolean {
    if (this.#turns.waiting > 0 || this.#spent >= this.#options.perTurn) return false;
    this.spend(cost);
    return true;
  }

  /** Runs `go` in its turn. It returns what it cost; nothing means 1. */
  wait(asker: Asker, go: () => number | void): void {
    this.#turns.add(asker, go);
    this.#schedule();
  }

  /** What was begun has cost so much, as is known now. */
  spend(cost: number): void {
    this.#spent += cost;
    this.#schedule();
  }

  /** Behind what this turn of the loop has still to read. */
  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    const { crowd } = this.#options;
    if (crowd && this.#turns.waiting >= crowd.size)
      setTimeout(() => this.#yieldToEventLoop(), crowd.pauseMs);
    else setImmediate(() => this.#yieldToEventLoop());
  }

  #yieldToEventLoop(): void {
    this.#isScheduled = false;
    this.#spent = 0;
    const { perTurn, mostMs = Infinity } = this.#options;
    const endMs = monotonicClock() + mostMs;
    do {
      const next = this.#turns.take();
      if (!next) return;
      this.spend(next.thing() ?? 1);
    } while (this.#spent < perTurn && monotonicClock() < endMs);
  }
}
