import type { Committing } from '../db/database.ts';
import { DomainError } from '../errors.ts';
import { LastByOthers } from '../lib/fair-queue.ts';
import { type DeviceQueue, type DeviceQueues, takeBatch, type DeviceBatch } from './queues.ts';
import type { MonotonicClock } from '../lib/clock-readings.ts';

export type BatcherOptions = {
  /** The most transactions at the same time. One more may begin behind another's commit. */
  maxInFlight: number;
  /**
   * Another transaction begins beside one under way when this many messages wait, or when that one takes this long. A
   * few large transactions cost less than many small ones.
   */
  anotherAtMessages: number;
  anotherAfterMs: number;
  /** About what one transaction may cost, in ordinary measurements. A measurement that many causes read counts more. */
  maxBatchItems: number;
};

export type Batcher = {
  /** Something waits in a queue. */
  wake(): void;
  /** How many messages are in the transactions under way. */
  depth(): number;
  /**
   * Whether no other account has waiting messages or had some taken within `quietMs`, and fewer than
   * `anotherAtMessages` messages wait.
   */
  isAlone(accountId: number, quietMs: number): boolean;
  /** Resolves when nothing is under way and nothing more can be begun. */
  drain(): Promise<void>;
  /** Begins no further batch and fails what waits. */
  stop(): void;
};

/**
 * Most of the estimated cost of a batch of ticks is reading its devices, which is done in pieces. So the batch may cost
 * this many times as much. What planning costs is bounded as always.
 */
const readFactor = 4;

type BatcherDeps = {
  /** A monotonic clock, ms. */
  monotonicClock: MonotonicClock;
  /** Called for each finished batch, with its duration. */
  observe?: ((messages: number, seconds: number) => void) | undefined;
};

/**
 * Takes what waits in the queues in few, large batches. Ticks have batches of their own, because reading many devices
 * for them would delay messages. `storeBatch` never rejects.
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
  /** The accounts whose messages were taken, and when. */
  const taken = new LastByOthers();
  /** The batch whose commit was sent while it was alone. The next one is planned on top of it. */
  let ahead: Batch | null = null;
  let scheduled = false;
  let stopped = false;
  /** The newest transaction takes long, so another one may begin beside it. */
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

  /** Ticks are planned only on what is committed. */
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
        // Only if it is alone: of two batches each would have to be behind the other.
        if (areTicks || inFlight > 1) return;
        batch.committing = committing;
        ahead = batch;
        queues.release(deviceBatches);
        beginBatches();
      },
      partDone(part) {
        // With the commit sent, their next messages may be taken already.
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
    /** Everything that arrives in one turn of the event loop shares a transaction. */
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
 * Messages that are stored together. A batch holds the queues of its devices until it is done, so that each device's
 * messages keep their order. Whoever stores it calls, in this order:
 * 1. `requeue`, if its first transaction has no room for everything,
 * 2. `onCommitSent`, when only the commit of that transaction remains,
 * 3. `partDone`, for each part that is stored by transactions of its own, as it is done.
 */
export type Batch = {
  deviceBatches: DeviceBatch[];
  /**
   * The batch whose commit is under way, and on top of which this one is planned; null: none. It is dropped when this
   * batch is done: otherwise each batch would keep all earlier ones in memory.
   */
  behind: Batch | null;
  /** Its commit, if that was sent while the batch was alone. */
  committing: Committing | null;
  /** Devices with a message that was given up. Later ones must not be stored before it is sent again. */
  givenUp: Set<DeviceQueue>;
  /** Resolves when everything is stored, requeued or failed. */
  done: Promise<void>;
  /** Returns messages to the front of their queues. `rests`: how many fragments are the rest of a split message. */
  requeue(postponed: DeviceBatch[], rests: number): void;
  /** The queues know the state after this commit. If the batch is alone, the next messages of its devices are taken. */
  onCommitSent(committing: Committing): void;
  /** The next messages of these devices may be taken, while others of the batch still have to be stored. */
  partDone(part: DeviceBatch[]): void;
};
