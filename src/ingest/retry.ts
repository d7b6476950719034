import { kindOf, stateOf } from '../db/errors.ts';
import { plainArrays, type Sql } from '../db/sql.ts';
import { DomainError } from '../errors.ts';
import type { Log } from '../log/logger.ts';
import { backoffMs, pause } from '../lib/wait.ts';
import { bisect, toRejection } from './plan.ts';
import { type DeviceBatch, type DeviceQueue, type DeviceQueues, failMessage } from './queue.ts';
import { MillisecondFull, rejectBeyondMillisecond, StaleDeviceState } from './write.ts';
import type { MonotonicClock, MonotonicMs } from '../lib/clock-readings.ts';

export type RetryDeps = AttemptDeps & {
  db: Sql;
  log: Log;
  queues: Pick<DeviceQueues, 'failBehind'>;
  redeliveries: Redeliveries;
  /**
   * When a transaction last failed without a success after it, ms; -Infinity: never. Items that are themselves at
   * fault do not count. `state` is the SQLSTATE, '' if there was none.
   */
  failing: { lastMs: number; state: string };
};

/** Messages that are being stored, by as many attempts as that takes. */
export type Retrying = {
  /** Devices with a failed message, in this batch or the one ahead of it. */
  givenUp: Set<DeviceQueue>;
  attempts: Attempts;
  deps: RetryDeps;
};

/** Gives up, when the bounds are reached or the service stops: nothing is acknowledged, and devices send it again. */
function giveUp(deviceBatches: DeviceBatch[], cause: unknown, { givenUp, deps }: Retrying): void {
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

/** Fails these messages: none is acknowledged. */
export function failAll(deviceBatches: DeviceBatch[], error: unknown): void {
  for (const { fragments } of deviceBatches)
    for (const { message } of fragments) failMessage(message, error);
}

/**
 * The devices that made a transaction fail, as far as this can be found out; their states are forgotten. The states of
 * the other queues are taken to be valid, provided that they were read in a transaction that is committed.
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

/** Splits a batch in two: the messages of accounts with one of these devices, and those of all others. */
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

/** The devices whose row no longer has the version that is remembered. */
async function listChanged(db: Sql, queues: DeviceQueue[]): Promise<Set<number>> {
  const { rows } = await db.query<{ device_id: number }>({
    name: 'ingest-changed',
    text: `
      select read.device_id
        from unnest($1::bigint[], $2::bigint[]) as read (device_id, version)
        left join device_state s on s.device_id = read.device_id and s.version = read.version
       where s.device_id is null`,
    values: plainArrays(
      queues.map(({ device }) => device.deviceId),
      queues.map(({ deviceState }) => deviceState?.version ?? null),
    ),
  });
  return new Set(rows.map(({ device_id }) => device_id));
}

/** Makes the next attempt read these devices again. */
export function forgetDeviceStates(deviceBatches: DeviceBatch[]): void {
  for (const { queue } of deviceBatches) queue.deviceState = null;
}

/** What to try after a failed transaction: first each of the `parts` by itself, then `next`. */
type RetryPlan = { parts: DeviceBatch[][]; next: DeviceBatch[] };

/**
 * Plans what to try next with messages that a transaction could not store. Messages in neither `parts` nor `next` have
 * failed.
 * - A device that changed in the meantime is read again, and its account stored apart from the others.
 * - While the database is away, everything is kept, within the bounds of `retry`.
 * - If an item is to blame, the batch is split, by account first, until that item is alone.
 *
 * Resolves when the next attempt may begin.
 */
export async function planRetry(
  deviceBatches: DeviceBatch[],
  error: unknown,
  areNew: boolean,
  storing: Retrying,
): Promise<RetryPlan> {
  const { attempts, deps } = storing;
  const isVoid = error instanceof StaleDeviceState || error instanceof MillisecondFull;
  const isRedelivery = areNew && kindOf(error) === 'unique';
  const isAgainRight = isVoid || isRedelivery || isTransient(error);
  if (isTransient(error)) {
    deps.failing.lastMs = deps.monotonicClock();
    // A `DomainError` has the database's error as its cause.
    deps.failing.state = stateOf(error instanceof DomainError ? error.cause : error);
  }
  if (isAgainRight && !mayFollow(attempts, deps)) return givenUp(deviceBatches, error, storing);
  if (isVoid) return storeOthersFirst(deviceBatches, error, deps);
  // The transaction may have been committed, so the states have to be read again.
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

function givenUp(deviceBatches: DeviceBatch[], error: unknown, storing: Retrying): RetryPlan {
  giveUp(deviceBatches, error, storing);
  return again([]);
}

async function waitAndRetry(
  deviceBatches: DeviceBatch[],
  error: unknown,
  storing: Retrying,
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

/** Stores the other accounts' messages first, so that they do not wait for those at fault. */
async function storeOthersFirst(
  deviceBatches: DeviceBatch[],
  error: MillisecondFull | StaleDeviceState,
  { db }: RetryDeps,
): Promise<RetryPlan> {
  const atFault = await findDevicesAtFault(error, deviceBatches, db).catch(() => new Set<number>());
  // No device can be blamed, so all of them are read again.
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
 * Whether no item is to blame, and the same attempt may succeed later: the database is away or was too slow, it chose
 * another transaction in a conflict, or its tables are not those that this program knows (another version, rights
 * withdrawn).
 */
function isTransient(error: unknown): boolean {
  return ['unavailable', 'cancelled', 'serialization', 'schema'].includes(kindOf(error));
}

/** Turns the one item that the database does not accept into a rejection, and logs the reason. */
function isolate([deviceBatch]: DeviceBatch[], error: unknown, { log }: RetryDeps): DeviceBatch[] {
  const fragment = deviceBatch?.fragments[0];
  if (!deviceBatch || !fragment) return [];
  // A tick is no message of the device; its sender postpones it.
  if (fragment.content.kind === 'none' || fragment.content.kind === 'tick') {
    failMessage(fragment.message, error);
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

/** How often, and for how long, a batch is retried before its messages fail. */
export type RetryBounds = {
  /** Transactions in a row that stored nothing. */
  attempts: number;
  /** Time since the first of them, ms. */
  forMs: number;
};

/**
 * Long enough for a database that restarts or fails over, and for another process that holds the same devices. Short
 * enough that neither messages nor their connections pile up. Devices send again what failed. (MQTT connections give up
 * earlier: `mqtt.storeTimeoutMs`.)
 */
export const retryBounds: RetryBounds = { attempts: 100, forMs: 30_000 };

type AttemptDeps = {
  /** A monotonic clock, ms. */
  monotonicClock: MonotonicClock;
  /** 0 to 1: spreads retries. */
  random: () => number;
  retry: RetryBounds;
  /** The service is stopping: nothing is retried. */
  stopping: AbortSignal;
};

const delays = { firstMs: 40, maxMs: 1_000 };

/** Attempts counted against the bounds; a batch shares them with its parts. */
type Attempts = {
  /** Attempts in a row that stored nothing. */
  failures: number;
  /** When the first of them failed, ms of `AttemptDeps.monotonicClock`. */
  sinceMs: number;
};

/** Counts an attempt that stored nothing. Returns whether another one may follow. */
function mayFollow(
  attempts: Attempts,
  { monotonicClock, retry }: Pick<AttemptDeps, 'monotonicClock' | 'retry'>,
): boolean {
  if (attempts.failures === 0) attempts.sinceMs = monotonicClock();
  attempts.failures += 1;
  return attempts.failures < retry.attempts && monotonicClock() - attempts.sinceMs < retry.forMs;
}

/** Waits before the next attempt: longer each time, at most a second, and not beyond the bounds. */
async function pauseBeforeNext(
  { failures, sinceMs }: Attempts,
  { monotonicClock, random, retry, stopping }: AttemptDeps,
): Promise<void> {
  const delayMs = backoffMs(failures, delays) * (0.5 + random() / 2);
  await pause(Math.min(delayMs, sinceMs + retry.forMs - monotonicClock()), stopping);
}

/**
 * Until when batches are expected to contain stored measurements, or another value in the same millisecond; ms of
 * `AttemptDeps.monotonicClock`. Redeliveries are rare, but cluster after reconnects and where clocks stand still. So
 * batches are written as if there were none, and after a unique violation with ON CONFLICT for ten seconds.
 */
type Redeliveries = { untilMs: number };

const expectedForMs = 10_000;

/** A batch contained such a measurement. */
export function noteRedelivery(redeliveries: Redeliveries, monotonicMs: MonotonicMs): void {
  redeliveries.untilMs = monotonicMs + expectedForMs;
}
