import type { Committing } from '../db/database.ts';
import { kindOf, stateOf } from '../db/errors.ts';
import { plainArray, type Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import { backoffMs, pause } from '../lib/wait.ts';
import type { Batch } from './batcher.ts';
import { commitBatch, type CommitDeps } from './commit.ts';
import { type Plan, bisect, toRejection } from './plan.ts';
import { type DeviceQueue, dropWithdrawn, type DeviceBatch } from './queues.ts';
import { MillisecondFull, rejectBeyondMillisecond, StaleDeviceState } from './write.ts';
import type { MonotonicClock, MonotonicMs } from '../lib/clock-readings.ts';

/**
 * Stores a batch by as many transactions as it takes (`commitBatch`): one, where nothing is wrong. When this
 * resolves every fragment is stored, was given back to its queue, or its message has failed. Only the first
 * transaction is behind the batch ahead: the next ones wait for it, so that each device's messages keep their
 * order. Never rejects.
 */
export async function storeBatch(batch: Batch, deps: StoreDeps): Promise<void> {
  try {
    const { deviceBatches, givenUp } = batch;
    await storeAll(deviceBatches, { batch, givenUp, attempts: { failures: 0, sinceMs: 0 }, deps });
  } catch (error) {
    deps.log.error(
      { event: 'batch.failed', err: error },
      'A batch could not be stored; its senders will send it again.',
    );
    failAll(batch.deviceBatches, error);
  }
}

/** A part of a batch, with what its transactions have no room for. */
async function storePart(part: DeviceBatch[], storing: Storing): Promise<void> {
  let deviceBatches = part;
  while (deviceBatches.length > 0)
    deviceBatches = await storeAll(deviceBatches, { ...storing, batch: null });
}

/** Tries until all of it is stored or has failed; of a part gives what its transaction had no room for. */
async function storeAll(given: DeviceBatch[], storing: Storing): Promise<DeviceBatch[]> {
  const { batch, givenUp, attempts, deps } = storing;
  let deviceBatches = given;
  let rest: DeviceBatch[] = [];
  for (let isFirst = true; ; isFirst = false) {
    deviceBatches = withoutGivenUp(withoutWithdrawn(deviceBatches), storing);
    if (deviceBatches.length === 0) return rest;
    // Of this attempt: others may meet a redelivery meanwhile.
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
      // What was planned on top of a commit that failed was not read at all.
      if (isFirst && !(await isCommitted(batch?.behind))) forgetDeviceStates(deviceBatches);
      const { parts, next } = await planRetry(deviceBatches, error, areNew, storing);
      for (const part of parts) {
        await storePart(part, storing);
        // Halves of one device's messages are one queue.
        if (deviceBatches.length > 1) batch?.partDone(part);
      }
      deviceBatches = next;
    }
  }
}

/** Whether what was planned on top of this is based on what is stored. */
async function isCommitted(behind: Batch | null | undefined): Promise<boolean> {
  if (!behind?.committing) return true;
  return behind.committing.committed.then(
    () => true,
    () => false,
  );
}

/** A message whose connection is closed will be sent again: what no transaction holds is dropped. */
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

/** What follows of devices of which something was given up fails too, so that all comes again in order. */
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

/** The bounds are reached, or the service stops: nothing is acknowledged, and devices send it again. */
function giveUp(deviceBatches: DeviceBatch[], cause: unknown, { givenUp, deps }: Storing): void {
  const { log, stopping, queues } = deps;
  forgetDeviceStates(deviceBatches);
  const message = stopping.aborted
    ? 'The service is stopping and could not store this.'
    : 'This could not be stored for too long.';
  if (!stopping.aborted) {
    log.error(
      { event: 'batch.given-up', err: cause, devices: deviceBatches.length },
      'A batch failed too often; nothing in it is acknowledged, and its senders will send it again.',
    );
  }
  const error = new DomainError('unavailable', message, { cause });
  for (const { queue } of deviceBatches) givenUp.add(queue);
  failAll(deviceBatches, error);
  queues.failBehind(deviceBatches, error);
}

/** None of these messages is acknowledged. */
function failAll(deviceBatches: DeviceBatch[], error: unknown): void {
  for (const { fragments } of deviceBatches)
    for (const { message } of fragments) message.fail(error);
}

/**
 * The devices for which a transaction was given up, as far as that can be told; their states are forgotten.
 * The other queues' are taken to be as they were read, in a transaction that is committed.
 */
async function findDevicesAtFault(
  error: MillisecondFull | StaleDeviceState,
  deviceBatch: DeviceBatch[],
  db: Sql,
): Promise<ReadonlySet<number>> {
  if (error instanceof MillisecondFull) return new Set(error.rows.map(({ deviceId }) => deviceId));
  const queues = deviceBatch
    .map(({ queue }) => queue)
    .filter(({ deviceState }) => deviceState !== null);
  const changed = await listChanged(db, queues);
  for (const queue of queues) if (changed.has(queue.device.deviceId)) queue.deviceState = null;
  for (const deviceId of error.forgotten) changed.add(deviceId);
  return changed;
}

/** A batch in two: the messages of accounts that have one of these devices, and those of all others. */
function setApart(
  batch: DeviceBatch[],
  atFault: ReadonlySet<number>,
): { ofThoseAtFault: DeviceBatch[]; ofOthers: DeviceBatch[] } {
  const isAtFault = ({ queue }: DeviceBatch) => atFault.has(queue.device.deviceId);
  const accounts = new Set(batch.filter(isAtFault).map(({ queue }) => queue.accountId));
  const { ofThoseAtFault = [], ofOthers = [] } = Object.groupBy(batch, ({ queue }) =>
    accounts.has(queue.accountId) ? 'ofThoseAtFault' : 'ofOthers',
  );
  return { ofThoseAtFault, ofOthers };
}

/** Those that do not stand any more at the version that is remembered of them. */
async function listChanged(db: Sql, queues: DeviceQueue[]): Promise<Set<number>> {
  const { rows } = await db.query<{ device_id: number }>({
    name: 'ingest-changed',
    text: `
      select read.device_id
        from unnest($1::bigint[], $2::bigint[]) as read (device_id, version)
        left join device_state s on s.device_id = read.device_id and s.version = read.version
       where s.device_id is null`,
    values: [
      plainArray(queues.map(({ device }) => device.deviceId)),
      plainArray(queues.map(({ deviceState }) => deviceState?.version ?? null)),
    ],
  });
  return new Set(rows.map(({ device_id }) => device_id));
}

/** What is known of these devices may not be so any more: it is read again. */
function forgetDeviceStates(deviceBatches: DeviceBatch[]): void {
  for (const { queue } of deviceBatches) queue.deviceState = null;
}

/** What is tried after a transaction that failed: `parts` first, each by itself, then `next` again. */
type RetryPlan = { parts: DeviceBatch[][]; next: DeviceBatch[] };

/**
 * What is to be tried next of messages that a transaction could not store; what is in neither has failed. A
 * device that changed meanwhile is read again, its account's part apart from the others'. While the database
 * is away all are kept, within the bounds of `retry`. While one item is to blame they are split, by account
 * first, until that item is alone. Resolves when it may be tried.
 */
async function planRetry(
  deviceBatches: DeviceBatch[],
  error: unknown,
  areNew: boolean,
  storing: Storing,
): Promise<RetryPlan> {
  const { attempts, deps } = storing;
  const isVoid = error instanceof StaleDeviceState || error instanceof MillisecondFull;
  const isRedelivery = areNew && kindOf(error) === 'unique';
  const isAgainRight = isVoid || isRedelivery || isTransient(error);
  if (isTransient(error)) {
    deps.failing.lastMs = deps.monotonicClock();
    // What the database said is behind the words that others are told.
    deps.failing.state = stateOf(error instanceof DomainError ? error.cause : error);
  }
  if (isAgainRight && !mayFollow(attempts, deps)) return givenUp(deviceBatches, error, storing);
  if (isVoid) return storeOthersFirst(deviceBatches, error, deps);
  // Whether the transaction committed may be unknown: what is remembered must be read again.
  forgetDeviceStates(deviceBatches);
  if (isRedelivery) {
    noteRedelivery(deps.redeliveries, deps.monotonicClock());
    return again(deviceBatches);
  }
  if (isAgainRight) return waitAndRetry(deviceBatches, error, storing);
  const parts = bisect(deviceBatches);
  return parts ? { parts, next: [] } : again(isolate(deviceBatches, error, deps));
}

const again = (deviceBatches: DeviceBatch[]): RetryPlan => ({ parts: [], next: deviceBatches });

function givenUp(deviceBatches: DeviceBatch[], error: unknown, storing: Storing): RetryPlan {
  giveUp(deviceBatches, error, storing);
  return again([]);
}

async function waitAndRetry(
  deviceBatches: DeviceBatch[],
  error: unknown,
  storing: Storing,
): Promise<RetryPlan> {
  const { attempts, deps } = storing;
  deps.log.warn(
    {
      event: 'batch.retried',
      err: error,
      attempt: attempts.failures,
      devices: deviceBatches.length,
    },
    'A batch could not be stored and will be retried.',
  );
  await pauseBeforeNext(attempts, deps);
  return deps.stopping.aborted ? givenUp(deviceBatches, error, storing) : again(deviceBatches);
}

/** What is not of the accounts that are to blame is stored first, so that it does not wait for what is. */
async function storeOthersFirst(
  deviceBatches: DeviceBatch[],
  error: MillisecondFull | StaleDeviceState,
  { db }: StoreDeps,
): Promise<RetryPlan> {
  const atFault = await findDevicesAtFault(error, deviceBatches, db).catch(() => new Set<number>());
  // Nobody can be named: they are read again, all of them.
  if (atFault.size === 0) forgetDeviceStates(deviceBatches);
  const { ofThoseAtFault, ofOthers } = setApart(deviceBatches, atFault);
  const areBoth = ofThoseAtFault.length > 0 && ofOthers.length > 0;
  const next = ofThoseAtFault.length > 0 ? ofThoseAtFault : ofOthers;
  return {
    parts: areBoth ? [ofOthers] : [],
    next: error instanceof MillisecondFull ? rejectBeyondMillisecond(next, error.rows) : next,
  };
}

/**
 * No item is to blame, and the same again is right: the database is away for now or was too slow, it chose another
 * transaction in a conflict, or its tables are not those that this program knows (another version's, rights withdrawn).
 */
function isTransient(error: unknown): boolean {
  return ['unavailable', 'cancelled', 'serialization', 'schema'].includes(kindOf(error));
}

/** The one item that the database will not take becomes a rejection, with the reason in the log. */
function isolate([deviceBatch]: DeviceBatch[], error: unknown, { log }: StoreDeps): DeviceBatch[] {
  const fragment = deviceBatch?.fragments[0];
  if (!deviceBatch || !fragment) return [];
  // Whoever brought the tick puts it off: it is no message of the device.
  if (fragment.content.kind === 'none' || fragment.content.kind === 'tick') {
    fragment.message.fail(error);
    return [];
  }
  log.error(
    { event: 'item.refused', err: error, device: deviceBatch.queue.device.uuid },
    'The database rejected an item, which was recorded as a rejection of its device.',
  );
  return [
    { queue: deviceBatch.queue, fragments: [toRejection(fragment, stateOf(error) || 'internal')] },
  ];
}

/** How often, and for how long, the messages of a batch are tried again before they fail. */
export type RetryBounds = {
  /** Transactions in a row that stored nothing. */
  attempts: number;
  /** Since the first of them, in milliseconds. */
  forMs: number;
};

/**
 * Long enough for a database that starts anew or fails over, and for another process that has the same
 * devices; short enough that neither messages nor their connections pile up. Devices send again what
 * failed. (MQTT connections give up before: `mqtt.storeTimeoutMs`.)
 */
export const retryBounds: RetryBounds = { attempts: 100, forMs: 30_000 };

type AttemptDeps = {
  /** Milliseconds that only go forward. */
  monotonicClock: MonotonicClock;
  /** 0 to 1: spreads retries. */
  random: () => number;
  retry: RetryBounds;
  /** The service stops: nothing is tried again. */
  stopping: AbortSignal;
};

const delays = { firstMs: 40, maxMs: 1_000 };

/** What counts against the bounds: one for a batch with all its parts. */
export type Attempts = {
  /** Those in a row that stored nothing. */
  failures: number;
  /** When the first of them failed, ms of `AttemptDeps.monotonicClock`. */
  sinceMs: number;
};

/** Another one stored nothing. Says whether there may be a next one. */
export function mayFollow(
  attempts: Attempts,
  { monotonicClock, retry }: Pick<AttemptDeps, 'monotonicClock' | 'retry'>,
): boolean {
  if (attempts.failures === 0) attempts.sinceMs = monotonicClock();
  attempts.failures += 1;
  return attempts.failures < retry.attempts && monotonicClock() - attempts.sinceMs < retry.forMs;
}

/** Waits before the next one: longer each time, a second at most, and no longer than it may be tried. */
async function pauseBeforeNext(
  { failures, sinceMs }: Attempts,
  { monotonicClock, random, retry, stopping }: AttemptDeps,
): Promise<void> {
  const delayMs = backoffMs(failures, delays) * (0.5 + random() / 2);
  await pause(Math.min(delayMs, sinceMs + retry.forMs - monotonicClock()), stopping);
}

/**
 * Until when batches may hold what is stored already, or another value in its millisecond; ms of `AttemptDeps.monotonicClock`.
 * Redeliveries are rare, and cluster: after reconnects, and where clocks stand still. So batches are written
 * as if there were none; after a unique violation, with ON CONFLICT for ten seconds.
 */
type Redeliveries = { untilMs: number };

const expectedForMs = 10_000;

/** A batch held such a thing. */
export function noteRedelivery(redeliveries: Redeliveries, monotonicMs: MonotonicMs): void {
  redeliveries.untilMs = monotonicMs + expectedForMs;
}

export type StoreDeps = CommitDeps &
  AttemptDeps & {
    redeliveries: Redeliveries;
    /**
     * When a transaction failed last that none has followed which stored what it held, ms; -Infinity: none. Items that
     * are wrong themselves do not count. `state` is the SQLSTATE, '' where there was none.
     */
    failing: { lastMs: number; state: string };
    /** When a transaction was committed last, ms. */
    progress: { lastMs: number };
  };

/** A batch while it is stored, by as many transactions as it takes. */
type Storing = {
  /** Null for a part of one, which has no queues to tell of. */
  batch: Batch | null;
  /** Devices of which a message has failed, in this batch or in the one ahead of it. */
  givenUp: Set<DeviceQueue>;
  attempts: Attempts;
  deps: StoreDeps;
};
