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
 * The way of a message, from the socket to its acknowledgement. Each step is the function of that name.
 *
 *   connector/mqtt
 *    1. take            read.ts                 reads whole packets, where its device may go on
 *    2. takePackets     read.ts                 takes PUBLISHes out of them, plain ones first (acceptLeading, publish.ts),
 *                                              others by accept; aedes gets the other packets, checked
 *       track           publish.ts              remembers whom to acknowledge (inflight.ts); an account beyond a quota
 *                                              waits here, unparsed (AccountBackpressure); others pass on (passOn)
 *    3. parseUplink     ../device/uplink.ts     makes measurements, events … of the payload, or rejections
 *   src/ingest
 *    4. ingest          ingest.ts               queues it behind the messages of its device
 *    5. beginBatches    batcher.ts              begins a transaction where another one may begin (mayBegin)
 *    6. takeBatch       queues.ts               takes what waits: accounts in turn, devices in order
 *    7. storeBatch      retry.ts                stores it, mostly by one commitBatch; what is tried where that
 *                                              fails says planRetry
 *    8. commitBatch     commit.ts               one transaction, of these steps:
 *       load            commit.ts               reads devices that are not remembered (device-state.ts)
 *       planBatch       plan.ts                 gives accounts their parts, and has each message applied to its device
 *                                              (rules/apply.ts, pure)
 *       dropBeyond      event-quota.ts          leaves out events beyond the account's quota
 *       write           write.ts                writes device states and rows, all statements at once; where
 *                                              alarms are to be decided, that is done in between
 *       onCommitSent    batcher.ts              lets the next batch begin on top of this commit
 *       afterCommit     after-commit.ts         after the commit: messages are stored, effects happen
 *   connector/mqtt    (for steps 1, 2, 9 and 10 HTTP has http/uplink.ts, a bridge bridge/bridge.ts)
 *    9. stored          inflight.ts             those before it on its connection first [MQTT-4.6.0-2]
 *   10. writePubacks    inflight.ts             all PUBACKs of a commit to one socket in one piece
 */

export type IngestOptions = BatcherOptions & {
  limits: StoreDeps['limits'];
  /** Devices whose state is remembered while they are silent. */
  maxRememberedDevices: number;
  /** What may be remembered of them, with their profiles, in bytes by estimate. */
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
  /** Milliseconds that only go forward. */
  monotonicClock: MonotonicClock;
  newUuid: () => string;
  /** 0 to 1: spreads retries. */
  random: () => number;
};

export type Ingest = {
  /** Stores the message, after those of the device that came before it, and tells `delivery`. */
  ingest(device: DeviceIdentity, uplink: Uplink, delivery: Delivery): void;
  /** Evaluates what time alone brings to the device, after those of its messages that were read. */
  tick(device: DeviceIdentity, delivery: Delivery): void;
  /** Those of its messages that were withdrawn, and that no transaction holds, fail now. */
  withdraw(device: DeviceIdentity): void;
  /** Whether messages of accounts other than this one wait for a transaction. */
  othersWait(accountId: number): boolean;
  /** Whether this account alone brought anything within `quietMs`, and no more of it waits than is stored soon. */
  isAlone(accountId: number, quietMs: number): boolean;
  /** Whether transactions are committed: none failed lately that none has followed. */
  isStoring(): boolean;
  /** The SQLSTATE with which transactions fail now, '' where they fail without one; null: they do not. */
  failure(): string | null;
  /** How long messages have waited while no transaction was committed, ms; 0 where none waits. */
  stalledMs(): number;
  /** Messages that are not committed yet. */
  depth(): number;
  /** Forgets which times measurements without one were given: the clock was set. */
  forgetStamps(): void;
  /** Forgets all that can be read again. */
  forget(): void;
  /** Stores what is under way, for at most `drainMs`. */
  close(drainMs: number): Promise<void>;
};

/** Messages that fail are tried again within a second: without a failure for so long nothing is tried. */
const failingMs = 10_000;

/** Starts what stores the messages of devices. */
export function startIngest(options: IngestOptions, deps: IngestDeps): Ingest {
  const { limits, maxBatchItems } = options;
  const queues = new DeviceQueues(options.maxRememberedDevices, maxBatchItems);
  const remembered = new ContextCache(options.maxRememberedBytes, deps.clock);
  const stopping = new AbortController();
  const failing = { lastMs: -Infinity, state: '' };
  const isFailing = () => deps.monotonicClock() - failing.lastMs <= failingMs;
  /** When a transaction was committed last, or the first of those that wait arrived. */
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
