import { setTimeout as sleep } from 'node:timers/promises';
import type { Delivery, DeviceIdentity, Uplink } from '../core/uplink.ts';
import type { Database } from '../db/database.ts';
import { DomainError } from '../errors.ts';
import { Entry } from './entry.ts';
import { createFollowUp } from './follow-up.ts';
import type { FollowUpDeps } from './follow-up.ts';
import { createLanes } from './lanes.ts';
import type { Work } from './lane.ts';
import { createLeaveOut, type EventQuota } from './leave-out.ts';
import { createContextLoader } from './load-contexts.ts';
import type { FindNewest } from './load-contexts.ts';
import { createPump } from './pump.ts';
import type { PumpOptions } from './pump.ts';
import { Remembered } from './remembered.ts';
import { createRepeats } from './repeats.ts';
import type { ApplyLimits } from './scope.ts';
import { settleBatch } from './settle.ts';
import type { Turn } from './store-once.ts';
import { stampArrivals } from './stamp-arrivals.ts';
import { failWithdrawn } from './withdrawn.ts';
import type { Writers } from './write.ts';

export type IngestOptions = PumpOptions & {
  limits: ApplyLimits;
  /** Devices whose context is remembered while they are silent. */
  maxRememberedDevices: number;
  /** What may be remembered of them, with their profiles, in bytes by estimate. */
  maxRememberedBytes: number;
};

export type IngestDeps = FollowUpDeps & {
  db: Database;
  writers: Writers;
  findNewest: FindNewest;
  eventQuota?: EventQuota | undefined;
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
  const lanes = createLanes(options.maxRememberedDevices, options.maxBatchItems);
  const remembered = new Remembered(options.maxRememberedBytes);
  const stopping = new AbortController();
  const settling = {
    ...deps,
    limits: options.limits,
    maxBatchItems: options.maxBatchItems,
    loadContexts: createContextLoader(deps.findNewest, remembered),
    remembered,
    charge: lanes.charge,
    leaveOut: deps.eventQuota && createLeaveOut(deps.eventQuota),
    repeats: createRepeats(),
    onCommitted: createFollowUp(deps),
    pause,
  };
  const pump = createPump(options, lanes, settle);
  /** Messages in the transactions under way. */
  let carried = 0;

  const unsubscribe = [
    deps.bus.subscribe('device', ({ deviceId }) => lanes.forget(deviceId)),
    deps.bus.subscribe('access', ({ deviceId }) => lanes.forget(deviceId)),
    deps.bus.subscribe('resync', () => lanes.forget()),
  ];

  function ingest(device: DeviceIdentity, uplink: Uplink, delivery: Delivery): void {
    const lane = lanes.laneOf(device);
    const content = stampArrivals(uplink, lane);
    const entry = new Entry(uplink, delivery);
    lanes.add(lane, { entry, content, rejections: uplink.rejections });
    pump.wake();
  }

  async function settle(batch: Work[], turn: Turn): Promise<void> {
    const sinceMs = performance.now();
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
      await settleBatch(batch, settling, { ...turn, putBack });
    } catch (error) {
      const spared = new Set(waitsAgain.flatMap(({ units }) => units));
      for (const { units } of batch)
        for (const unit of units) if (!spared.has(unit)) unit.entry.fail(error);
    }
    carried -= messages;
    deps.observe?.batch(messages, (performance.now() - sinceMs) / 1_000);
  }

  async function pause(attempt: number): Promise<void> {
    const delayMs = Math.min(1_000, 20 * 2 ** attempt) * (0.5 + Math.random() / 2);
    await sleep(delayMs, undefined, { signal: stopping.signal }).catch(() => {
      throw new DomainError('unavailable', 'The service stops before this could be stored.');
    });
  }

  async function close(drainMs: number): Promise<void> {
    const limit = new AbortController();
    const late = sleep(drainMs, undefined, { signal: limit.signal }).catch(() => {});
    await Promise.race([pump.drain(), late]);
    limit.abort();
    pump.stop();
    stopping.abort();
    for (const end of unsubscribe) end();
    failWaiting();
  }

  function failWaiting(): void {
    const error = new DomainError('unavailable', 'The service stopped before this was stored.');
    for (const { entry } of lanes.waiting()) entry.fail(error);
  }

  const withdraw = ({ deviceId }: DeviceIdentity) => failWithdrawn(lanes.takeWithdrawn(deviceId));

  const depth = () => lanes.countWaiting() + carried;
  const forget = () => remembered.shrink();
  return { ingest, withdraw, othersWait: lanes.othersWait, depth, forget, close };
}

function countUnits(batch: Work[]): number {
  return batch.reduce((sum, { units }) => sum + units.length, 0);
}
