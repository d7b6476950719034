import { setImmediate } from 'node:timers/promises';
import type { Measurement } from '../contract/values.ts';
import type { Committing, Database, Transaction } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { findStored } from '../measurements/store.ts';
import { type CommandName, findAnsweredCommands } from '../commands/answers.ts';
import { type AfterCommitDeps, afterCommit } from './after-commit.ts';
import type { ContextCache, ContextLoader } from './device-state.ts';
import { type EventQuotaFilter, noneLeftOut } from './event-quota.ts';
import { type Plan, planBatch, postponeUnread } from './plan.ts';
import {
  areTicks,
  type DeviceBatch,
  type DeviceQueue,
  type DeviceQueues,
  dropWithdrawn,
  tickedTs,
} from './queue.ts';
import { failAll, forgetDeviceStates, planRetry, type RetryDeps, type Retrying } from './retry.ts';
import {
  type AnsweredCommands,
  type ApplyLimits,
  commandKey,
  type DeviceState,
  type MeasurementRow,
  nameOfStored,
  StoredAlready,
} from './rules/model.ts';
import { aheadMs } from './rules/watermark.ts';
import { StaleDeviceState, write, type WriteDeps, type Written } from './write.ts';

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

type CommitDeps = AfterCommitDeps &
  WriteDeps &
  Pick<RetryDeps, 'monotonicClock'> & {
    db: Database;
    loadDeviceStates: ContextLoader;
    /** Counts the memory of the devices that were read or used. */
    remembered: ContextCache;
    /** Charges accounts for what a plan costs. */
    queues: Pick<DeviceQueues, 'charge' | 'noteStorms' | 'failBehind'>;
    limits: ApplyLimits;
    /** What one transaction may cost: `planBatch`. */
    maxBatchItems: number;
    /** Absent: all events are recorded, and none are counted. */
    eventQuota?: EventQuotaFilter | undefined;
  };

export type StoreDeps = CommitDeps &
  RetryDeps & {
    /** When a transaction was last committed, ms. */
    progress: { lastMs: number };
  };

/** A batch that is being stored, in as many transactions as it takes. */
type Storing = Retrying & {
  /** Null for a part of a batch, which has no queues to report to. */
  batch: Batch | null;
  deps: StoreDeps;
};

/**
 * Stores a batch in as many transactions as it takes (`commitBatch`); in one if nothing is wrong. When this resolves,
 * every fragment is stored, is back in its queue, or its message has failed. Only the first transaction may be behind
 * the batch ahead. The others wait for that batch, so that each device's messages keep their order. Never rejects.
 */
export async function storeBatch(batch: Batch, deps: StoreDeps): Promise<void> {
  try {
    const { deviceBatches, givenUp } = batch;
    await storeWithRetries(deviceBatches, {
      batch,
      givenUp,
      attempts: { failures: 0, sinceMs: 0 },
      deps,
    });
  } catch (error) {
    deps.log.error(
      { event: 'batch.failed', err: error },
      'A batch could not be stored; its senders will send it again.',
    );
    failAll(batch.deviceBatches, error);
  }
}

/** Stores a part of a batch, including what its transactions have no room for. */
async function storePart(part: DeviceBatch[], storing: Storing): Promise<void> {
  let deviceBatches = part;
  while (deviceBatches.length > 0)
    deviceBatches = await storeWithRetries(deviceBatches, { ...storing, batch: null });
}

/** Retries until everything is stored or has failed. For a part, returns what its transaction had no room for. */
async function storeWithRetries(given: DeviceBatch[], storing: Storing): Promise<DeviceBatch[]> {
  const { batch, givenUp, attempts, deps } = storing;
  let deviceBatches = given;
  let rest: DeviceBatch[] = [];
  for (let isFirst = true; ; isFirst = false) {
    deviceBatches = withoutGivenUp(withoutWithdrawn(deviceBatches), storing);
    if (deviceBatches.length === 0) return rest;
    // Read for each attempt, because other batches may meet a redelivery in between.
    const areNew = deps.monotonicClock() >= deps.redeliveries.untilMs;
    const onCommitSent = (plan: Plan, committing: Committing) => {
      if (plan.postponed.length > 0) {
        deviceBatches = plan.deviceBatches;
        for (const message of plan.split) message.open += 1;
        if (batch) batch.requeue(plan.postponed, plan.split.length);
        else rest = [...plan.postponed, ...rest];
      }
      if (isFirst) batch?.onCommitSent(committing);
    };
    const behind = isFirst ? batch?.behind?.committing : null;
    try {
      await commitBatch(deviceBatches, { areNew, behind, onCommitSent }, deps);
      attempts.failures = 0;
      deps.failing.lastMs = -Infinity;
      deps.progress.lastMs = deps.monotonicClock();
      return rest;
    } catch (error) {
      await batch?.behind?.done;
      for (const queue of batch?.behind?.givenUp ?? []) givenUp.add(queue);
      // The plan was built on top of a commit that failed, so its device states are not those in the database.
      if (isFirst && !(await isCommitted(batch?.behind))) forgetDeviceStates(deviceBatches);
      const { parts, next } = await planRetry(deviceBatches, error, areNew, storing);
      for (const part of parts) {
        await storePart(part, storing);
        // The halves of one device's messages share a queue.
        if (deviceBatches.length > 1) batch?.partDone(part);
      }
      deviceBatches = next;
    }
  }
}

/** Whether the batch ahead is committed, so that a plan on top of it is valid. */
async function isCommitted(behind: Batch | null | undefined): Promise<boolean> {
  if (!behind?.committing) return true;
  return behind.committing.committed.then(
    () => true,
    () => false,
  );
}

/** Drops messages whose connection has closed: the device sends them again. */
function withoutWithdrawn(deviceBatches: DeviceBatch[]): DeviceBatch[] {
  const isAny = deviceBatches.some(({ fragments }) =>
    fragments.some(({ message }) => message.delivery.isWithdrawn),
  );
  if (!isAny) return deviceBatches;
  return deviceBatches.flatMap(({ queue, fragments }) => {
    const left = dropWithdrawn(fragments);
    return left.length > 0 ? [{ queue, fragments: left }] : [];
  });
}

/** Fails later messages of devices with a given-up message, so that everything comes again in order. */
function withoutGivenUp(deviceBatches: DeviceBatch[], { givenUp, deps }: Storing): DeviceBatch[] {
  if (givenUp.size === 0) return deviceBatches;
  const error = new DomainError(
    'unavailable',
    'An earlier message of this device could not be stored.',
  );
  const gone = deviceBatches.filter(({ queue }) => givenUp.has(queue));
  failAll(gone, error);
  deps.queues.failBehind(gone, error);
  return deviceBatches.filter(({ queue }) => !givenUp.has(queue));
}

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
async function commitBatch(
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
    const stored = areNew
      ? undefined
      : await whileKnown(read, (known) => findStoredAlready(tx, known));
    const answered = listAnswered(read);
    const commands =
      answered.length > 0 ? await whileKnown(read, () => findCommands(tx, answered)) : undefined;
    plan = planBatch(read, deps.limits, deps.maxBatchItems, stored, commands);
    if (tooMany.size > 0) postponeUnread(plan, deviceBatches.filter(isTooMany));
    deps.queues.charge(deviceBatches, plan.charges);
    deps.queues.noteStorms(plan.rows.signals, deps.monotonicClock());
    if (plan.rows.events.length > 0 && deps.eventQuota && !isOver())
      leftOut = deps.eventQuota.dropBeyond(plan, plan.deviceBatches);
    // A plan that took more than half of what a transaction may cost is written in another turn of the event loop.
    if (plan.cost > deps.maxBatchItems / 2) {
      await setImmediate();
      if (isOver()) throw new StaleDeviceState();
    }
    return write(tx, plan, areNew, deps);
  }

  /** Reads more. A device may be forgotten in the meantime, which does not mean that it was removed. */
  async function whileKnown<T>(
    read: DeviceBatch[],
    work: (known: DeviceBatch[]) => Promise<T>,
  ): Promise<T> {
    const known = read.filter(({ queue }) => queue.deviceState !== null);
    const found = await work(known);
    if (isOver() || known.some(({ queue }) => queue.deviceState === null))
      throw new StaleDeviceState();
    return found;
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
  deps.meanings.written(written.meanings);
  deps.eventQuota?.committed(plan, written, leftOut);
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

const none: ReadonlyMap<number, StoredAlready> = new Map();

/**
 * What the history already has of the measurements that the newest one of each sense does not decide: those older than
 * it, ahead of their arrival, or of a sense with a stored watermark. Called when redeliveries are expected.
 */
async function findStoredAlready(
  tx: Sql,
  deviceBatches: DeviceBatch[],
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

/** The commands that these messages answer; usually none. */
function listAnswered(deviceBatches: DeviceBatch[]): CommandName[] {
  const asked: CommandName[] = [];
  for (const { queue, fragments } of deviceBatches)
    for (const { content } of fragments)
      if (content.kind === 'command-answer')
        asked.push({ deviceId: queue.device.deviceId, commandId: content.answer.commandId });
  return asked;
}

async function findCommands(tx: Sql, answered: CommandName[]): Promise<AnsweredCommands> {
  const found = await findAnsweredCommands(tx, answered);
  return new Map(
    found.map(({ deviceId, commandId, id, version, progress }) => [
      commandKey(deviceId, commandId),
      { deviceId, id, version, before: progress, after: progress },
    ]),
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
