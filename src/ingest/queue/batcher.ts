import type { DeviceQueues } from './device-queues.ts';
import type { Work } from './device-queue.ts';
import type { Ahead, Turn } from './turn.ts';

export type BatcherOptions = {
  /** Transactions beside each other, at most; one more may begin behind another's commit. */
  maxInFlight: number;
  /**
   * What makes another transaction worth its while beside one that is under way: so many messages that
   * wait, or that one taking so long. Few and large ones cost less than many small ones.
   */
  anotherAtMessages: number;
  anotherAfterMs: number;
  /** What one transaction may cost, about, in ordinary measurements: one that many causes read counts more. */
  maxBatchItems: number;
};

export type Batcher = {
  /** Something waits in a queue. */
  wake(): void;
  /** Resolves when nothing is under way, and nothing that could be. */
  drain(): Promise<void>;
  /** Begins no other batch. */
  stop(): void;
};

/** Takes what waits in the queues as batches, and begins each when it is worth its while; `settle` never rejects. */
export function createBatcher(
  options: BatcherOptions,
  queues: DeviceQueues,
  settle: (batch: Work[], turn: Turn) => Promise<void>,
): Batcher {
  let inFlight = 0;
  /** The one among them whose queues have gone on: what follows is planned on top of it. */
  let ahead: Ahead | null = null;
  let scheduled = false;
  let stopped = false;
  /** The newest transaction takes long: what waits behind it goes on beside it. */
  let isLate = false;
  const late = setTimeout(() => {
    isLate = true;
    beginBatches();
  }, options.anotherAfterMs).unref();
  let idle = () => {};

  function isWorthAnother(): boolean {
    // One behind it: of two, beside each other, nothing would keep the second one behind it.
    if (ahead) return inFlight === 1;
    if (inFlight === 0) return true;
    if (inFlight >= options.maxInFlight) return false;
    return isLate || queues.countWaiting() >= options.anotherAtMessages;
  }

  function beginBatches(): void {
    while (queues.hasReady() && isWorthAnother() && !stopped) {
      isLate = false;
      late.refresh();
      carry(queues.take(options.maxBatchItems));
    }
  }

  function carry(batch: Work[]): void {
    inFlight += 1;
    let own: Ahead | null = null;
    let held = batch;
    const settled: Promise<void> = settle(batch, {
      ahead,
      putBack: queues.putBack,
      onCommitting(committing) {
        // Only alone: of two, each would have to be behind the other.
        if (inFlight > 1) return;
        ahead = own = { committing, settled };
        queues.release(batch);
        beginBatches();
      },
      onPartSettled(part) {
        // Otherwise they have gone on already.
        if (own !== null) return;
        const gone = new Set(part.map(({ queue }) => queue));
        held = held.filter(({ queue }) => !gone.has(queue));
        queues.release(part);
        beginBatches();
      },
    }).then(() => {
      inFlight -= 1;
      if (own === null) queues.release(held);
      else ahead = null;
      beginBatches();
      if (inFlight === 0) idle();
    });
  }

  return {
    /** All that one turn of the event loop brings shares a transaction. */
    wake() {
      if (scheduled || !isWorthAnother()) return;
      scheduled = true;
      setImmediate(() => {
        scheduled = false;
        beginBatches();
      });
    },
    drain() {
      beginBatches();
      return new Promise((resolve) => {
        idle = resolve;
        if (inFlight === 0) resolve();
      });
    },
    stop() {
      stopped = true;
      clearTimeout(late);
    },
  };
}
