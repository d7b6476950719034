import { setImmediate } from 'node:timers/promises';
import type { Measurement } from '../contract/values.ts';
import type { Committing, Database, Transaction } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { type AfterCommitDeps, afterCommit } from './after-commit.ts';
import type { ContextCache, ContextLoader } from './device-state.ts';
import { type EventQuotaFilter, noneLeftOut } from './event-quota.ts';
import { type Plan, planBatch, postponeUnread } from './plan.ts';
import {
  areTicks,
  type DeviceQueue,
  type DeviceQueues,
  tickedTs,
  type DeviceBatch,
} from './queues.ts';
import {
  type ApplyLimits,
  type DeviceState,
  type MeasurementRow,
  nameOfStored,
  StoredAlready,
} from './rules/model.ts';
import { aheadMs } from './rules/watermark.ts';
import { StaleDeviceState, write, type Writers, type Written } from './write.ts';

export type CommitDeps = AfterCommitDeps & {
  db: Database;
  writers: Writers;
  loadDeviceStates: ContextLoader;
  findStored: FindStored;
  /** Counts the memory of the devices that were read or used. */
  remembered: ContextCache;
  /** Charges accounts for what a plan costs. */
  queues: Pick<DeviceQueues, 'charge' | 'failBehind'>;
  limits: ApplyLimits;
  /** What one transaction may cost: `planBatch`. */
  maxBatchItems: number;
  /** Absent: all events are recorded, and none are counted. */
  eventQuota?: EventQuotaFilter | undefined;
};

type CommitOptions = {
  /** No measurement in it is expected to be stored already. */
  areNew: boolean;
  /** The commit under way on top of which this is planned. */
  behind: Committing | null | undefined;
  /** The commit was sent, and the queues know the state after it. The plan may have postponed some messages. */
  onCommitSent: (plan: Plan, committing: Committing) => void;
};

/**
 * The queues whose devices are read in a transaction. `ticked`: those that have only ticks, with the time of the last
 * one. `arrived`: when the first fragment of each arrived, ms.
 */
type Unread = {
  queues: Set<DeviceQueue>;
  ticked: Map<DeviceQueue, number>;
  arrived: Map<DeviceQueue, number>;
};

const allRead: ReadonlySet<DeviceQueue> = new Set();

/**
 * Stores messages in one transaction, or as many of them as one may cost: loads unknown device states, plans, writes,
 * commits, and runs what follows the commit. Throws the database's errors, `StaleDeviceState` or `MillisecondFull`.
 * After an error it may be unknown whether the messages are stored and whether the queues' states are valid.
 */
export async function commitBatch(
  deviceBatches: DeviceBatch[],
  { areNew, behind, onCommitSent }: CommitOptions,
  deps: CommitDeps,
): Promise<void> {
  const unread: Unread = { queues: new Set(), ticked: new Map(), arrived: new Map() };
  const isOver = () => stage === 'over';
  let plan: Plan | undefined;
  let leftOut = noneLeftOut;
  let stage: 'open' | 'sent' | 'over' = 'open';

  async function loadPlanWrite(tx: Transaction): Promise<Written> {
    const tooMany = await load(deviceBatches, unread, tx, isOver, deps);
    const isTooMany = ({ queue }: DeviceBatch) => tooMany.has(queue);
    const read =
      tooMany.size > 0
        ? deviceBatches.filter((deviceBatch) => !isTooMany(deviceBatch))
        : deviceBatches;
    const stored = areNew ? undefined : await findKept(tx, read);
    plan = planBatch(read, deps.limits, deps.maxBatchItems, stored);
    if (tooMany.size > 0) postponeUnread(plan, deviceBatches.filter(isTooMany));
    deps.queues.charge(deviceBatches, plan.charges);
    if (plan.rows.events.length > 0 && deps.eventQuota && !isOver())
      leftOut = deps.eventQuota.dropBeyond(plan, plan.deviceBatches);
    // A plan that took more than half of what a transaction may cost is written in another turn of the event loop.
    if (plan.cost > deps.maxBatchItems / 2) {
      await setImmediate();
      if (isOver()) throw new StaleDeviceState();
    }
    return write(tx, plan, areNew, deps.writers);
  }

  async function findKept(tx: Transaction, read: DeviceBatch[]) {
    const known = read.filter(({ queue }) => queue.deviceState !== null);
    const stored = await findStoredAlready(tx, known, deps.findStored);
    // Forgotten in the meantime, which does not mean that the device was removed.
    if (isOver() || known.some(({ queue }) => queue.deviceState === null))
      throw new StaleDeviceState();
    return stored;
  }

  function onCommitting(committing: Committing): void {
    // A database that did not answer for long may continue after the batch was retried.
    if (stage === 'over' || !plan) return;
    stage = 'sent';
    if (leftOut !== noneLeftOut) deps.eventQuota?.committing(leftOut);
    // A silent device is read again when it sends. The memory is for those that send now.
    for (const { queue, deviceState } of plan.after)
      queue.deviceState = unread.ticked.has(queue) ? null : deviceState;
    for (const { queue } of plan.deviceBatches) deps.remembered.note(queue);
    onCommitSent(plan, committing);
  }

  let written: Written;
  try {
    written = await deps.db.transaction(loadPlanWrite, {
      behind: behind ?? undefined,
      onCommitting,
    });
  } catch (error) {
    deps.eventQuota?.undo(leftOut, isSent(stage));
    if (error instanceof StaleDeviceState) noteForgotten(error, deviceBatches, unread.queues);
    // They were read with a version that the rollback has undone.
    for (const queue of unread.queues) queue.deviceState = null;
    throw error;
  } finally {
    stage = 'over';
  }
  if (!plan) return;
  deps.eventQuota?.committed(plan.deviceBatches, written, leftOut);
  afterCommit(plan, written, deps);
}

/**
 * Reads unknown device states, and notes their queues in `unread`. Returns the queues that one transaction has no room
 * to read. Throws `StaleDeviceState` if others changed in the meantime.
 */
async function load(
  deviceBatches: DeviceBatch[],
  unread: Unread,
  tx: Transaction,
  isOver: () => boolean,
  { loadDeviceStates, remembered }: CommitDeps,
): Promise<ReadonlySet<DeviceQueue>> {
  const { queues, ticked, arrived } = unread;
  for (const { queue, fragments } of deviceBatches) {
    if (queue.deviceState !== null) continue;
    queues.add(queue);
    const [first] = fragments;
    if (first) arrived.set(queue, first.message.uplink.arrivedTs);
    if (areTicks(fragments)) ticked.set(queue, tickedTs(fragments) ?? 0);
  }
  if (queues.size === 0) return allRead;
  const { deviceStates, left } = await loadDeviceStates(tx, [...queues], ticked, arrived);
  // Forgotten while others were read, which does not mean that the device was removed.
  const isForgotten = ({ queue }: DeviceBatch) => queue.deviceState === null && !queues.has(queue);
  if (isOver() || deviceBatches.some(isForgotten)) throw new StaleDeviceState();
  for (const queue of queues) {
    const deviceState = deviceStates.get(queue.device.deviceId);
    queue.deviceState = deviceState ? { ...deviceState, device: queue.device } : null;
    if (!ticked.has(queue)) remembered.note(queue);
  }
  return left;
}

function noteForgotten(
  error: StaleDeviceState,
  deviceBatches: DeviceBatch[],
  unread: ReadonlySet<DeviceQueue>,
): void {
  for (const { queue } of deviceBatches)
    if (queue.deviceState === null && !unread.has(queue))
      error.forgotten.add(queue.device.deviceId);
}

/** A function, because TypeScript does not see that a callback changes the variable. */
const isSent = (stage: 'open' | 'sent' | 'over'): boolean => stage === 'sent';

/** Finds which of the rows are in the history. */
type FindStored = (tx: Sql, rows: MeasurementRow[]) => Promise<MeasurementRow[]>;

const none: ReadonlyMap<number, StoredAlready> = new Map();

/**
 * What the history already has of the measurements that the newest one of each sense does not decide: those older than
 * it, ahead of their arrival, or of a sense with a stored watermark. Called when redeliveries are expected.
 */
async function findStoredAlready(
  tx: Sql,
  deviceBatches: DeviceBatch[],
  findStored: FindStored,
): Promise<ReadonlyMap<number, StoredAlready>> {
  const asked = new Map<number, MeasurementRow[]>();
  for (const { queue, fragments } of deviceBatches) {
    const { deviceState } = queue;
    if (!deviceState || deviceState.watched.size === 0) continue;
    const rows = rowsOf(deviceState, fragments);
    if (rows.length > 0) asked.set(deviceState.device.deviceId, rows);
  }
  if (asked.size === 0) return none;
  const found = Map.groupBy(
    await findStored(tx, [...asked.values()].flat()),
    ({ deviceId }) => deviceId,
  );
  const names = (deviceId: number) => (found.get(deviceId) ?? []).map(nameOfRow);
  return new Map(
    [...asked.keys()].map((deviceId) => [deviceId, new StoredAlready(names(deviceId))]),
  );
}

/** All measurements that the device's purposes read, if any of them is in doubt. */
function rowsOf(
  { device, watched, seen, clocks }: DeviceState,
  fragments: DeviceBatch['fragments'],
) {
  const rows: MeasurementRow[] = [];
  const newest = new Map<string, number>();
  let isInDoubt = false;
  for (const { content, message } of fragments) {
    if (content.kind !== 'measurements') continue;
    const { arrivedTs } = message.uplink;
    for (const { value } of content.items) {
      const { sId, val, ts = arrivedTs } = value;
      const number = watched.get(sId);
      if (number === undefined) continue;
      const last = newest.get(sId) ?? seen.get(number)?.ts ?? -Infinity;
      isInDoubt ||= ts < last || ts > arrivedTs + aheadMs || clocks?.has(sId) === true;
      newest.set(sId, Math.max(last, ts));
      const place =
        typeof val === 'number' ? { val, long: undefined } : { val: val.lat, long: val.long };
      rows.push({ deviceId: device.deviceId, sId, ts, ...place });
    }
  }
  return isInDoubt ? rows : [];
}

function nameOfRow({ sId, ts, val, long }: MeasurementRow): string {
  const given: Measurement['val'] = long === undefined ? val : { lat: val, long };
  return nameOfStored({ sId, ts, val: given });
}
