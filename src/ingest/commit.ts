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
  /** Told of the devices that were read or used. */
  remembered: ContextCache;
  /** Charged for what a plan costs. */
  queues: Pick<DeviceQueues, 'charge' | 'failBehind'>;
  limits: ApplyLimits;
  /** What one transaction may cost: `planBatch`. */
  maxBatchItems: number;
  /** Absent: all events are recorded, and nothing is counted. */
  eventQuota?: EventQuotaFilter | undefined;
};

type CommitOptions = {
  /** No measurement of it is expected to be stored already. */
  areNew: boolean;
  /** The commit under way on top of which this is planned. */
  behind: Committing | null | undefined;
  /** The commit is sent, and the queues know what follows it; some of the plan's messages may be postponed. */
  onCommitSent: (plan: Plan, committing: Committing) => void;
};

/**
 * What is read for a transaction; `ticked`: those that have nothing but ticks, with the time of the last; `arrived`: when
 * the first fragment of each arrived (ms).
 */
type Unread = {
  queues: Set<DeviceQueue>;
  ticked: Map<DeviceQueue, number>;
  arrived: Map<DeviceQueue, number>;
};

const allRead: ReadonlySet<DeviceQueue> = new Set();

/**
 * Stores messages in one transaction, or as many as one may cost: loads what is not known of their devices,
 * plans, writes, commits, and tells. Throws what the database says, `StaleDeviceState` or `MillisecondFull`:
 * whether it is stored may be unknown then, and what the queues know too.
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
    // To write what took half of that to plan is a piece of its own.
    if (plan.cost > deps.maxBatchItems / 2) {
      await setImmediate();
      if (isOver()) throw new StaleDeviceState();
    }
    return write(tx, plan, areNew, deps.writers);
  }

  async function findKept(tx: Transaction, read: DeviceBatch[]) {
    const known = read.filter(({ queue }) => queue.deviceState !== null);
    const stored = await findStoredAlready(tx, known, deps.findStored);
    // Forgotten meanwhile: that is no sign of a removal.
    if (isOver() || known.some(({ queue }) => queue.deviceState === null))
      throw new StaleDeviceState();
    return stored;
  }

  function onCommitting(committing: Committing): void {
    // A database that did not answer for long goes on with what was tried again meanwhile.
    if (stage === 'over' || !plan) return;
    stage = 'sent';
    if (leftOut !== noneLeftOut) deps.eventQuota?.committing(leftOut);
    // A silent device is read again when it speaks: the memory is for those that send.
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
    // They were read as claimed, and with the rollback they are not.
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
 * Reads what is not known of devices, and notes those in `unread`. Gives those that one transaction has no room
 * to read. Throws `StaleDeviceState` where others changed meanwhile.
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
  // Forgotten while others were read: that is no sign of a removal.
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

/** TypeScript does not see that a callback has changed it. */
const isSent = (stage: 'open' | 'sent' | 'over'): boolean => stage === 'sent';

/** Those of the rows that the history has. */
type FindStored = (tx: Sql, rows: MeasurementRow[]) => Promise<MeasurementRow[]>;

const none: ReadonlyMap<number, StoredAlready> = new Map();

/**
 * What the history has of the measurements of devices where the newest of each sense does not tell: below it,
 * ahead of their arrival, or of a sense with a clock of its own. To be asked where a redelivery is expected.
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

/** All that its purposes read, where one of them is in doubt. */
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
