import { setImmediate as immediate } from 'node:timers/promises';
import { monotonicClock } from './clock.ts';
import { type Asker, FairQueue } from './fair-queue.ts';

/** Lets other work of the event loop run. */
export async function yieldToEventLoop(): Promise<void> {
  await immediate();
}

/** Each visit takes ten or twenty microseconds. */
const visitedAtOnce = 100;

/** Visits the things that exist now one after the other, and yields to the event loop if there are many. */
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
  /** Work allowed in one turn of the event loop. The caller chooses the unit: requests, or their cost. */
  mostPerTurn: number;
  /** The longest time for waiting work in one turn, whatever it costs; absent: no limit. */
  mostMs?: number;
  /** If `size` or more wait, the next ones start after a pause, which leaves time to other work. */
  crowd?: { size: number; pauseMs: number };
};

/**
 * Spreads work over turns of the event loop. One turn reads every socket that has data, and without a limit all of that
 * would be processed before anything else. Work beyond the limit waits, and addresses take turns.
 */
export class LoopScheduler {
  readonly #options: LoopSchedulerOptions;
  readonly #queue = new FairQueue<() => number | void>();
  /** Whether something may be done at once. It never overtakes waiting work. */
  isOpen = true;
  #waiting = 0;
  #spent = 0;
  #isScheduled = false;

  constructor(options: LoopSchedulerOptions) {
    this.#options = options;
  }

  get waiting(): number {
    return this.#waiting;
  }

  /** Whether work of this cost may be done at once, which is charged then. */
  takeNow(cost = 1): boolean {
    if (!this.isOpen) return false;
    this.spend(cost);
    return true;
  }

  /** Runs `go` when it is its turn. `go` returns its cost; undefined means 1. */
  wait(asker: Asker, go: () => number | void): void {
    this.#queue.add(asker, go);
    this.#waiting += 1;
    this.isOpen = false;
    this.#schedule();
  }

  /** Adds a cost that became known only after the work had begun. */
  spend(cost: number): void {
    this.#spent += cost;
    this.isOpen &&= this.#spent < this.#options.mostPerTurn;
    this.#schedule();
  }

  /** Runs after the remaining reads of this turn of the loop. */
  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    const { crowd } = this.#options;
    if (crowd && this.#waiting >= crowd.size)
      setTimeout(() => this.#yieldToEventLoop(), crowd.pauseMs);
    else setImmediate(() => this.#yieldToEventLoop());
  }

  #yieldToEventLoop(): void {
    this.#isScheduled = false;
    this.#spent = 0;
    const { mostPerTurn, mostMs = Infinity } = this.#options;
    const endMs = monotonicClock() + mostMs;
    while (this.#waiting > 0 && this.#spent < mostPerTurn) {
      const next = this.#queue.take();
      this.#waiting -= 1;
      this.spend(next?.thing() ?? 1);
      if (monotonicClock() >= endMs) break;
    }
    this.isOpen = this.#waiting === 0 && this.#spent < mostPerTurn;
  }
}
