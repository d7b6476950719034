import { setTimeout as sleep } from 'node:timers/promises';
import type { Delivery, DeviceIdentity, Uplink } from '../contract/uplink.ts';
import { DomainError } from '../errors.ts';
import type { IngestObserver } from './after-commit.ts';
import { type Batch, storeBatch, type StoreDeps } from './commit.ts';
import { ContextCache, createContextLoader, type ListWaitingSenses } from './device-state.ts';
import { createEventQuota, type EventQuotaOptions } from './event-quota.ts';
import { type DeviceBatch, DeviceQueues, newMessage, takeBatch, uplinkOfTick } from './queue.ts';
import { retryBounds, type RetryBounds } from './retry.ts';
import type { Clock, MonotonicClock } from '../lib/clock-readings.ts';

/*
 * The way of a message from the socket to its acknowledgement. Each step is the function of that name.
 *
 *   connector
 *    1. take            mqtt/read.ts            reads whole packets, if its device may go on
 *    2. takePackets     mqtt/read.ts            takes the PUBLISHes out of them, plain ones first (acceptLeading,
 *                                               publish.ts), others by accept; aedes gets the other packets, checked
 *       track           mqtt/publish.ts         notes what to acknowledge; parks it unparsed if its account is beyond a
 *                                               quota (mqtt/backpressure.ts)
 *    3. receive         device/receive.ts       turns the payload into measurements, events … or rejections, and
 *                                               charges its device (limits.ts); HTTP and bridges begin here
 *   src/ingest
 *    4. ingest          ingest.ts               queues it behind the messages of its device
 *    5. beginBatches    ingest.ts               begins a transaction if another one may begin (mayBegin)
 *    6. takeBatch       queue.ts                takes what waits: accounts in turn, devices in order
 *    7. storeBatch      commit.ts               stores it, usually in one commitBatch; if that fails, planRetry
 *                                               (retry.ts) says what is tried
 *    8. commitBatch     commit.ts               runs one transaction, in these steps:
 *       load            commit.ts               reads devices that are not remembered (device-state.ts)
 *       planBatch       plan.ts                 divides the cost among accounts, and applies each message to its device
 *                                               (rules/apply.ts, rules/measurements.ts, pure)
 *       dropBeyond      event-quota.ts          leaves out events beyond the account's quota
 *       write           write.ts                writes device states and rows, all statements at once; with alarms the
 *                                               states, then decides on them (alarms/decide.ts), then the rows
 *       onCommitSent    ingest.ts               lets the next batch begin on top of this commit
 *       afterCommit     after-commit.ts         after the commit: messages are stored, effects happen
 *   connector
 *    9. stored          mqtt/acknowledge.ts     waits for earlier messages of its connection [MQTT-4.6.0-2]
 *   10. writePubacks    mqtt/acknowledge.ts     writes all PUBACKs of a commit to one socket together
 *
 * For steps 1, 2, 9 and 10 HTTP has http/uplink.ts, a bridge bridge/bridge.ts.
 */

export type IngestOptions = BatcherOptions & {
  limits: StoreDeps['limits'];
  /** How many silent devices have their state remembered. */
  maxRememberedDevices: number;
  /** How many bytes, by estimate, may be remembered of devices and their profiles. */
  maxRememberedBytes: number;
  /** Absent: `retryBounds`. */
  retry?: RetryBounds | undefined;
};

type IngestDeps = Pick<
  StoreDeps,
  | 'db'
  | 'knownSeries'
  | 'meanings'
  | 'alarms'
  | 'bus'
  | 'log'
  | 'handOver'
  | 'observe'
  | 'listeners'
> & {
  /** Absent: no alarm waits for a measurement. */
  listWaitingSenses?: ListWaitingSenses | undefined;
  eventQuota?: EventQuotaOptions | undefined;
  /** The time of day, ms. */
  clock: Clock;
  /** A monotonic clock, ms. */
  monotonicClock: MonotonicClock;
  newUuid: () => string;
  /** 0 to 1: spreads retries. */
  random: () => number;
};

export type Ingest = {
  /** Stores the message after earlier ones of its device, and reports to `delivery`. */
  ingest(device: DeviceIdentity, uplink: Uplink, delivery: Delivery): void;
  /** Evaluates what time alone triggers for the device, after those of its messages that have been read. */
  tick(device: DeviceIdentity, delivery: Delivery): void;
  /** Fails those of its messages that were withdrawn and are in no transaction yet. */
  withdraw(device: DeviceIdentity): void;
  /** Whether messages of other accounts wait for a transaction. */
  othersWait(accountId: number): boolean;
  /** Whether only this account sent anything within `quietMs`, and few messages wait (see `Batcher`). */
  isAlone(accountId: number, quietMs: number): boolean;
  /** Whether transactions are committed: none has failed lately without a success after it. */
  isStoring(): boolean;
  /** The SQLSTATE with which transactions fail now, '' if they fail without one; null: they do not fail. */
  failure(): string | null;
  /** How long messages have waited without any commit, ms; 0 if none waits. */
  stalledMs(): number;
  /** How many messages are not committed yet. */
  depth(): number;
  /** Forgets the times given to measurements that came without one. Called when the clock was set. */
  forgetStamps(): void;
  /** Forgets everything that can be read again. */
  forget(): void;
  /** Stores what is under way, for at most `drainMs`. */
  close(drainMs: number): Promise<void>;
};

/** A failed message is retried within a second, so without a failure for this long nothing is being retried. */
const failingMs = 10_000;

/** Starts the part that stores devices' messages. */
export function startIngest(options: IngestOptions, deps: IngestDeps): Ingest {
  const { limits, maxBatchItems } = options;
  const queues = new DeviceQueues(options.maxRememberedDevices, maxBatchItems);
  const remembered = new ContextCache(options.maxRememberedBytes, deps.clock);
  const stopping = new AbortController();
  const failing = { lastMs: -Infinity, state: '' };
  const isFailing = () => deps.monotonicClock() - failing.lastMs <= failingMs;
  /** When a transaction was last committed, or the first of the waiting messages arrived. */
  const progress = { lastMs: deps.monotonicClock() };
  const storeDeps: StoreDeps = {
    ...deps,
    queues,
    limits,
    maxBatchItems,
    remembered,
    loadDeviceStates: createContextLoader(remembered, deps.listWaitingSenses, limits.nowTs),
    eventQuota: deps.eventQuota && createEventQuota(deps.eventQuota, deps),
    redeliveries: { untilMs: -Infinity },
    retry: options.retry ?? retryBounds,
    stopping: stopping.signal,
    failing,
    progress,
  };
  const batcher = createBatcher(options, queues, (batch) => storeBatch(batch, storeDeps), deps);

  const unsubscribe = [
    deps.bus.subscribe('device', ({ deviceId }) => queues.forget(deviceId)),
    deps.bus.subscribe('access', ({ deviceId }) => queues.forget(deviceId)),
    deps.bus.subscribe('resync', () => queues.forget()),
  ];

  const depth = () => queues.waiting + batcher.depth();

  function ingest(device: DeviceIdentity, uplink: Uplink, delivery: Delivery): void {
    if (depth() === 0) progress.lastMs = deps.monotonicClock();
    queues.enqueue(device, newMessage(uplink, delivery, deps.newUuid), uplink.content);
    batcher.wake();
  }

  function tick(device: DeviceIdentity, delivery: Delivery): void {
    const message = newMessage(uplinkOfTick(deps.clock()), delivery, deps.newUuid);
    queues.enqueue(device, message, { kind: 'tick' });
    batcher.wake();
  }

  async function close(drainMs: number): Promise<void> {
    const limit = new AbortController();
    const late = sleep(drainMs, undefined, { signal: limit.signal }).catch(() => {});
    await Promise.race([batcher.drain(), late]);
    limit.abort();
    stopping.abort();
    batcher.stop();
    for (const end of unsubscribe) end();
  }

  return {
    ingest,
    tick,
    withdraw: ({ deviceId }) => queues.withdraw(deviceId),
    othersWait: (accountId) => queues.othersWait(accountId),
    isAlone: batcher.isAlone,
    isStoring: () => !isFailing(),
    failure: () => (isFailing() ? failing.state : null),
    stalledMs: () => (depth() === 0 ? 0 : deps.monotonicClock() - progress.lastMs),
    depth,
    forgetStamps: () => queues.forgetStamps(),
    forget: () => remembered.shrink(),
    close,
  };
}

type BatcherOptions = {
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

type Batcher = {
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
  monotonicClock: MonotonicClock;
  observe?: Pick<IngestObserver, 'batchMessages' | 'batchSeconds'> | undefined;
};

/**
 * Takes what waits in the queues in few, large batches. Ticks have batches of their own, because reading many devices
 * for them would delay messages; so have accounts with a storm of alarms. `storeBatch` never rejects.
 */
export function createBatcher(
  options: BatcherOptions,
  queues: DeviceQueues,
  storeBatch: (batch: Batch) => Promise<void>,
  { monotonicClock, observe }: BatcherDeps,
): Batcher {
  let inFlight = 0;
  /** A batch of ticks, or of a storm of alarms, is under way beside the others. */
  const beside = { ticks: false, storms: false };
  let messagesInFlight = 0;
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
    // What waits of a storm would not be in it.
    return isLate || (queues.readyStorms.size === 0 && queues.waiting >= options.anotherAtMessages);
  }

  /** They are planned only on what is committed. */
  function mayBeginBeside(lane: keyof typeof beside): boolean {
    const ready = lane === 'ticks' ? queues.readyTicks : queues.readyStorms;
    return ready.size > 0 && !beside[lane] && !ahead;
  }

  function beginBatches(): void {
    while (queues.readyDevices.size > 0 && mayBegin() && !stopped) {
      const batch = takeBatch(queues, options.maxBatchItems);
      if (batch.length === 0) break;
      isLate = false;
      late.refresh();
      begin(batch, 'messages');
    }
    if (mayBeginBeside('storms') && !stopped)
      begin(takeBatch(queues, options.maxBatchItems, queues.readyStorms), 'storms');
    if (mayBeginBeside('ticks') && !stopped)
      begin(takeBatch(queues, options.maxBatchItems * readFactor, queues.readyTicks), 'ticks');
  }

  function begin(deviceBatches: DeviceBatch[], lane: 'messages' | keyof typeof beside): void {
    const sinceMs = monotonicClock();
    let messages = 0;
    for (const { queue, fragments } of deviceBatches) {
      messages += fragments.length;
      if (lane !== 'ticks') queues.taken.note(queue.accountId, sinceMs);
    }
    if (lane === 'messages') inFlight += 1;
    else beside[lane] = true;
    messagesInFlight += messages;
    let held = deviceBatches;
    const batch: Batch = {
      deviceBatches,
      behind: lane === 'messages' ? ahead : null,
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
        if (lane !== 'messages' || inFlight > 1) return;
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
      if (lane === 'messages') inFlight -= 1;
      else beside[lane] = false;
      messagesInFlight -= messages;
      batch.behind = null;
      if (batch.committing) ahead = null;
      else queues.release(held);
      observe?.batchMessages.observe(messages);
      observe?.batchSeconds.observe((monotonicClock() - sinceMs) / 1_000);
      beginBatches();
      if (isIdle()) onIdle();
    });
  }

  const isIdle = () => inFlight === 0 && !beside.ticks && !beside.storms;

  function failWaiting(): void {
    queues.fail(new DomainError('unavailable', 'The service stopped before this was stored.'));
  }

  return {
    /** Everything that arrives in one turn of the event loop shares a transaction. */
    wake() {
      if (scheduled || !(mayBegin() || mayBeginBeside('storms') || mayBeginBeside('ticks'))) return;
      scheduled = true;
      setImmediate(() => {
        scheduled = false;
        beginBatches();
      });
    },
    depth: () => messagesInFlight,
    isAlone: (accountId, quietMs) =>
      !queues.othersWait(accountId) &&
      queues.waiting < options.anotherAtMessages &&
      monotonicClock() - queues.taken.than(accountId) > quietMs,
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
