import { setTimeout as sleep } from 'node:timers/promises';
import type { Delivery, DeviceIdentity, Uplink } from '../contract/uplink.ts';
import type { Database } from '../db/database.ts';
import { DomainError } from '../errors.ts';
import { Message } from './rules/message.ts';
import { createAfterCommit } from './store/after-commit.ts';
import type { AfterCommitDeps } from './store/after-commit.ts';
import { createDeviceQueues } from './queue/device-queues.ts';
import type { Work } from './queue/device-queue.ts';
import { createEventQuota, type EventQuota } from './store/event-quota.ts';
import { createContextLoader } from './store/load-contexts.ts';
import type { FindNewest } from './store/load-contexts.ts';
import { createBatcher } from './queue/batcher.ts';
import type { BatcherOptions } from './queue/batcher.ts';
import { ContextCache } from './store/context-cache.ts';
import { createRedeliveries } from './store/redelivery.ts';
import type { ApplyLimits } from './rules/scope.ts';
import { commitBatch } from './store/commit.ts';
import type { Turn } from './queue/turn.ts';
import { stampArrivals } from './queue/stamp-arrivals.ts';
import { failWithdrawn } from './queue/withdrawn.ts';
import type { Writers } from './store/write.ts';

export type IngestOptions = BatcherOptions & {
  limits: ApplyLimits;
  /** Devices whose context is remembered while they are silent. */
  maxRememberedDevices: number;
  /** What may be remembered of them, with their profiles, in bytes by estimate. */
  maxRememberedBytes: number;
};

export type IngestDeps = AfterCommitDeps & {
  db: Database;
  writers: Writers;
  findNewest: FindNewest;
  eventQuota?: EventQuota | undefined;
  /** The time of day, ms. */
  clock: () => number;
  /** Milliseconds that only go forward. */
  nowMs: () => number;
  newUuid: () => string;
  /** 0 to 1: spreads retries. */
  random: () => number;
};

export type Ingest = {
  /** Stores the message, after those of the device that came before it, and tells `delivery`. */
  ingest(device: DeviceIdentity, uplink: Uplink, delivery: Delivery): void;
  /** Those of its messages that were withdrawn, and that no transaction holds, fail now. */
  withdraw(device: DeviceIdentity): void;
  /** Whether messages of accounts other than this one wait for a transaction. */
  othersWait(accountId: number): boolean;
  /** Messages that are not committed yet. */
  depth(): number;
  /** Forgets all that can be read again. */
  forget(): void;
  /** Stores what is under way, for at most `drainMs`. */
  close(drainMs: number): Promise<void>;
};

/** The way of every device message from its connector into the database. */
export function startIngest(options: IngestOptions, deps: IngestDeps): Ingest {
  const queues = createDeviceQueues(options.maxRememberedDevices, options.maxBatchItems);
  const remembered = new ContextCache(options.maxRememberedBytes, deps.clock);
  const stopping = new AbortController();
  const settling = {
    ...deps,
    limits: options.limits,
    maxBatchItems: options.maxBatchItems,
    loadContexts: createContextLoader(deps.findNewest, remembered),
    remembered,
    charge: queues.charge,
    leaveOut: deps.eventQuota && createEventQuota(deps.eventQuota, deps),
    repeats: createRedeliveries(deps.nowMs),
    onCommitted: createAfterCommit(deps),
    pause,
  };
  const batcher = createBatcher(options, queues, settle);
  /** Messages in the transactions under way. */
  let carried = 0;

  const unsubscribe = [
    deps.bus.subscribe('device', ({ deviceId }) => queues.forget(deviceId)),
    deps.bus.subscribe('access', ({ deviceId }) => queues.forget(deviceId)),
    deps.bus.subscribe('resync', () => queues.forget()),
  ];

  function ingest(device: DeviceIdentity, uplink: Uplink, delivery: Delivery): void {
    const queue = queues.queueOf(device);
    const content = stampArrivals(uplink, queue);
    const message = new Message(uplink, delivery, deps.newUuid);
    queues.add(queue, { message, content, rejections: uplink.rejections });
    batcher.wake();
  }

  async function settle(batch: Work[], turn: Turn): Promise<void> {
    const sinceMs = deps.nowMs();
    let messages = countUnits(batch);
    let waitsAgain: Work[] = [];
    const putBack: Turn['putBack'] = (left, rests) => {
      const whole = countUnits(left) - rests;
      carried -= whole;
      messages -= whole;
      waitsAgain = [...left, ...waitsAgain];
      turn.putBack(left, rests);
      // Nothing takes it any more.
      if (stopping.signal.aborted) failWaiting();
    };
    carried += messages;
    try {
      await commitBatch(batch, settling, { ...turn, putBack });
    } catch (error) {
      const spared = new Set(waitsAgain.flatMap(({ units }) => units));
      for (const { units } of batch)
        for (const unit of units) if (!spared.has(unit)) unit.message.fail(error);
    }
    carried -= messages;
    deps.observe?.batch(messages, (deps.nowMs() - sinceMs) / 1_000);
  }

  async function pause(attempt: number): Promise<void> {
    const delayMs = Math.min(1_000, 20 * 2 ** attempt) * (0.5 + deps.random() / 2);
    await sleep(delayMs, undefined, { signal: stopping.signal }).catch(() => {
      throw new DomainError('unavailable', 'The service stops before this could be stored.');
    });
  }

  async function close(drainMs: number): Promise<void> {
    const limit = new AbortController();
    const late = sleep(drainMs, undefined, { signal: limit.signal }).catch(() => {});
    await Promise.race([batcher.drain(), late]);
    limit.abort();
    batcher.stop();
    stopping.abort();
    for (const end of unsubscribe) end();
    failWaiting();
  }

  function failWaiting(): void {
    const error = new DomainError('unavailable', 'The service stopped before this was stored.');
    for (const { message } of queues.waiting()) message.fail(error);
  }

  const withdraw = ({ deviceId }: DeviceIdentity) => failWithdrawn(queues.takeWithdrawn(deviceId));

  const depth = () => queues.countWaiting() + carried;
  const forget = () => remembered.shrink();
  return { ingest, withdraw, othersWait: queues.othersWait, depth, forget, close };
}

function countUnits(batch: Work[]): number {
  return batch.reduce((sum, { units }) => sum + units.length, 0);
}
