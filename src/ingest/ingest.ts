import { setTimeout as sleep } from 'node:timers/promises';
import type { Delivery, DeviceIdentity, Uplink } from '../contract/uplink.ts';
import { type BatcherOptions, createBatcher } from './batcher.ts';
import { DeviceQueues, assignTimestamps } from './queues.ts';
import { Message, newFragment, uplinkOfTick } from './rules/model.ts';
import { ContextCache, createContextLoader, type ListWaitingSenses } from './device-state.ts';
import { createEventQuota, type EventQuotaOptions } from './event-quota.ts';
import { retryBounds, type RetryBounds, storeBatch, type StoreDeps } from './retry.ts';
import type { FindNewest } from './save-states.ts';
import type { Clock, MonotonicClock } from '../lib/clock-readings.ts';

/*
 * The way of a message from the socket to its acknowledgement. Each step is the function of that name.
 *
 *   connector/mqtt
 *    1. take            read.ts                 reads whole packets, if its device may go on
 *    2. takePackets     read.ts                 takes the PUBLISHes out of them, plain ones first (acceptLeading,
 *                                              publish.ts), others by accept; aedes gets the other packets, checked
 *       track           publish.ts              notes what to acknowledge (inflight.ts); passes it on (passOn), or
 *                                              parks it unparsed if its account is beyond a quota (AccountBackpressure)
 *    3. parseUplink     ../device/uplink.ts     turns the payload into measurements, events … or rejections
 *   src/ingest
 *    4. ingest          ingest.ts               queues it behind the messages of its device
 *    5. beginBatches    batcher.ts              begins a transaction if another one may begin (mayBegin)
 *    6. takeBatch       queues.ts               takes what waits: accounts in turn, devices in order
 *    7. storeBatch      retry.ts                stores it, usually in one commitBatch; planRetry says what is tried if
 *                                              that fails
 *    8. commitBatch     commit.ts               runs one transaction, in these steps:
 *       load            commit.ts               reads devices that are not remembered (device-state.ts)
 *       planBatch       plan.ts                 divides the cost among accounts, and applies each message to its device
 *                                              (rules/apply.ts, pure)
 *       dropBeyond      event-quota.ts          leaves out events beyond the account's quota
 *       write           write.ts                writes device states and rows, all statements at once; alarms, if any,
 *                                              are decided in between
 *       onCommitSent    batcher.ts              lets the next batch begin on top of this commit
 *       afterCommit     after-commit.ts         after the commit: messages are stored, effects happen
 *   connector/mqtt    (for steps 1, 2, 9 and 10 HTTP has http/uplink.ts, a bridge bridge/bridge.ts)
 *    9. stored          inflight.ts             waits for earlier messages of its connection [MQTT-4.6.0-2]
 *   10. writePubacks    inflight.ts             writes all PUBACKs of a commit to one socket together
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

export type IngestDeps = Pick<
  StoreDeps,
  'db' | 'writers' | 'bus' | 'log' | 'handOver' | 'observe' | 'listeners'
> & {
  findNewest: FindNewest;
  findStored: StoreDeps['findStored'];
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
    loadDeviceStates: createContextLoader(deps.findNewest, remembered, deps.listWaitingSenses),
    eventQuota: deps.eventQuota && createEventQuota(deps.eventQuota, deps),
    redeliveries: { untilMs: -Infinity },
    retry: options.retry ?? retryBounds,
    stopping: stopping.signal,
    failing,
    progress,
  };
  const batcher = createBatcher(options, queues, (batch) => storeBatch(batch, storeDeps), {
    monotonicClock: deps.monotonicClock,
    observe: deps.observe?.batch,
  });

  const unsubscribe = [
    deps.bus.subscribe('device', ({ deviceId }) => queues.forget(deviceId)),
    deps.bus.subscribe('access', ({ deviceId }) => queues.forget(deviceId)),
    deps.bus.subscribe('resync', () => queues.forget()),
  ];

  const depth = () => queues.waiting + batcher.depth();

  function ingest(device: DeviceIdentity, uplink: Uplink, delivery: Delivery): void {
    const message = new Message(uplink, delivery, deps.newUuid);
    const fragment = newFragment(message, uplink.content, uplink.rejections);
    const queue = queues.queueOf(device);
    queue.device = device;
    fragment.content = assignTimestamps(uplink, queue);
    if (depth() === 0) progress.lastMs = deps.monotonicClock();
    queues.add(queue, fragment);
    batcher.wake();
  }
  function tick(device: DeviceIdentity, delivery: Delivery): void {
    const message = new Message(uplinkOfTick(deps.clock()), delivery, deps.newUuid);
    const queue = queues.queueOf(device);
    queue.device = device;
    queues.add(queue, newFragment(message, { kind: 'tick' }, []));
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
    othersWait: queues.readyDevices.othersWait,
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
