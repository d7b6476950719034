import type { Committing } from '../db/database.ts';
import { DomainError } from '../errors.ts';
import { LastByOthers } from '../lib/fair-queue.ts';
import { type DeviceQueue, type DeviceQueues, takeBatch, type DeviceBatch } from './queues.ts';
import type { MonotonicClock } from '../lib/clock-readings.ts';

export type BatcherOptions = {
  /** Transactions beside each other, at most; one more may begin behind another's commit. */
  maxInFlight: number;
  /**
   * Another transaction begins beside one that is under way when this many messages wait, or when that one
   * takes this long. Few and large ones cost less than many small ones.
   */
  anotherAtMessages: number;
  anotherAfterMs: number;
  /** What one transaction may cost, about, in ordinary measurements: one that many causes read counts more. */
  maxBatchItems: number;
};

export type Batcher = {
  /** Something waits in a queue. */
  wake(): void;
  /** Messages in the transactions under way. */
  depth(): number;
  /**
   * Whether messages of no other account wait, or were taken within `quietMs`, and no more of this one's than a
   * transaction takes.
   */
  isAlone(accountId: number, quietMs: number): boolean;
  /** Resolves when nothing is under way, and nothing that could be. */
  drain(): Promise<void>;
  /** Begins no other batch; what waits fails. */
  stop(): void;
};

/**
 * Of what a batch of ticks costs by estimate, most is to read its devices, piece by piece: it may be so many
 * times as much. What it costs to plan is bounded as always.
 */
const readFactor = 4;

type BatcherDeps = {
  /** Milliseconds that only go forward. */
  monotonicClock: MonotonicClock;
  /** Told of each batch that is done, and how long it took. */
  observe?: ((messages: number, seconds: number) => void) | undefined;
};

/**
 * Takes what waits in the queues as batches, few and large. Ticks have one of their own beside them: where many
 * devices are read for these, messages would wait for it. `storeBatch` never rejects.
 */
export function createBatcher(
  options: BatcherOptions,
  queues: DeviceQueues,
  storeBatch: (batch: Batch) => Promise<void>,
  { monotonicClock, observe }: BatcherDeps,
): Batcher {
  let inFlight = 0;
  /** A batch of ticks is under way, beside the others. */
  let isTicking = false;
  let messagesInFlight = 0;
  /** Accounts whose messages were taken. */
  const taken = new LastByOthers();
  /** The batch whose commit was sent while it was alone: the next one is planned on top of it. */
  let ahead: Batch | null = null;
  let scheduled = false;
  let stopped = false;
  /** The newest transaction takes long: another one may begin beside it. */
  let isLate = false;
  const late = setTimeout(() => {
    isLate = true;
    beginBatches();
  }, options.anotherAfterMs).unref();
  let onIdle = () => {};

  function mayBegin(): boolean {
    // Only one batch may run behind the one that commits: nothing would keep two of them in order.
    if (ahead) return inFlight === 1;
    if (inFlight === 0) return true;
    if (inFlight >= options.maxInFlight) return false;
    return isLate || queues.waiting >= options.anotherAtMessages;
  }

  /** What a batch of ticks is planned on is committed. */
  function mayTick(): boolean {
    return !isTicking && !ahead;
  }

  function beginBatches(): void {
    while (queues.readyDevices.size > 0 && mayBegin() && !stopped) {
      isLate = false;
      late.refresh();
      begin(takeBatch(queues, options.maxBatchItems), false);
    }
    if (queues.readyTicks.size > 0 && mayTick() && !stopped)
      begin(takeBatch(queues, options.maxBatchItems * readFactor, queues.readyTicks), true);
  }

  function begin(deviceBatches: DeviceBatch[], areTicks: boolean): void {
    const sinceMs = monotonicClock();
    let messages = 0;
    for (const { queue, fragments } of deviceBatches) {
      messages += fragments.length;
      if (!areTicks) taken.note(queue.accountId, sinceMs);
    }
    if (areTicks) isTicking = true;
    else inFlight += 1;
    messagesInFlight += messages;
    let held = deviceBatches;
    const batch: Batch = {
      deviceBatches,
      behind: areTicks ? null : ahead,
      committing: null,
      givenUp: new Set(),
      done: Promise.resolve(),
      requeue(postponed, rests) {
        let whole = -rests;
        for (const { fragments } of postponed) whole += fragments.length;
        messages -= whole;
        messagesInFlight -= whole;
        queues.requeue(postponed);
        if (stopped) failWaiting();
      },
      onCommitSent(committing) {
        // Only alone: of two, each would have to be behind the other.
        if (areTicks || inFlight > 1) return;
        batch.committing = committing;
        ahead = batch;
        queues.release(deviceBatches);
        beginBatches();
      },
      partDone(part) {
        // Otherwise their next messages may be taken already.
        if (batch.committing) return;
        const gone = new Set(part.map(({ queue }) => queue));
        held = held.filter(({ queue }) => !gone.has(queue));
        queues.release(part);
        beginBatches();
      },
    };
    batch.done = storeBatch(batch).then(() => {
      if (areTicks) isTicking = false;
      else inFlight -= 1;
      messagesInFlight -= messages;
      batch.behind = null;
      if (batch.committing) ahead = null;
      else queues.release(held);
      observe?.(messages, (monotonicClock() - sinceMs) / 1_000);
      beginBatches();
      if (isIdle()) onIdle();
    });
  }

  const isIdle = () => inFlight === 0 && !isTicking;

  function failWaiting(): void {
    queues.fail(new DomainError('unavailable', 'The service stopped before this was stored.'));
  }

  return {
    /** All that one turn of the event loop brings shares a transaction. */
    wake() {
      if (scheduled || !(mayBegin() || (queues.readyTicks.size > 0 && mayTick()))) return;
      scheduled = true;
      setImmediate(() => {
        scheduled = false;
        beginBatches();
      });
    },
    depth: () => messagesInFlight,
    isAlone: (accountId, quietMs) =>
      !queues.readyDevices.othersWait(accountId) &&
      queues.waiting < options.anotherAtMessages &&
      monotonicClock() - taken.than(accountId) > quietMs,
    drain() {
      beginBatches();
      return new Promise((resolve) => {
        onIdle = resolve;
        if (isIdle()) resolve();
      });
    },
    stop() {
      stopped = true;
      clearTimeout(late);
      failWaiting();
    },
  };
}

/**
 * Messages that are stored together. It holds their devices' queues until it is done, so that one device's
 * messages keep their order. Whoever stores it calls, in this order:
 * 1. `requeue`, where its first transaction has no room for all of it;
 * 2. `onCommitSent`, when nothing is left to do for that transaction but its commit;
 * 3. `partDone`, where parts of it are stored by transactions of their own: each as it is done.
 */
export type Batch = {
  deviceBatches: DeviceBatch[];
  /**
   * The batch whose commit is under way, and on top of which this one is planned; null: none. Let go of when
   * this one is done: otherwise each would keep all before it in memory.
   */
  behind: Batch | null;
  /** Its commit, once it was sent while the batch was alone. */
  committing: Committing | null;
  /** Devices of which something was given up: what follows of them must not be stored before it comes again. */
  givenUp: Set<DeviceQueue>;
  /** Resolves when all of it is stored, put back or failed. */
  done: Promise<void>;
  /** Messages of it that wait again, in front of their queues; so many fragments are the rests of split messages. */
  requeue(postponed: DeviceBatch[], rests: number): void;
  /** The queues know what follows the commit: if the batch is alone, the next messages of its devices are taken. */
  onCommitSent(committing: Committing): void;
  /** The next messages of these devices may be taken, while others of the batch are still to be stored. */
  partDone(part: DeviceBatch[]): void;
};
