import type { DoneBy } from '../audit/entry.ts';
import { insertEntry } from '../audit/queries.ts';
import type { Bus } from '../bus/bus.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { ingestLock, purgeLock } from '../db/locks.ts';
import { inTurns } from '../lib/in-turns.ts';
import { lockUsage } from '../quotas/queries.ts';

/** So many devices are cleared before it is looked whether to stop. */
const devicesAtOnce = 50;

type RemovedDevice = { deviceId: number; uuid: string };

export type RemovalDeps = {
  db: Database;
  bus: Bus;
  /** Clears the events and measurements of devices that are gone; may be called twice for one. */
  purge: (db: Database, deviceIds: number[]) => Promise<void>;
  /** Told of a purge that failed; `resume` makes up for it. */
  onPurgeError: (error: unknown) => void;
};

export type DeviceRemoval = {
  /** Removes a device with everything that belongs to it; false when the account has no such device. */
  removeDevice(accountId: number, uuid: string, by: DoneBy): Promise<boolean>;
  /** What follows the commit that removed the rows of devices: their connections and history go. */
  finishRemoval(devices: RemovedDevice[]): Promise<void>;
  /**
   * Clears what earlier removals left behind when they were cut off: for the start, and every hour. One
   * process at a time does; others leave it to that one. Rejects at the first purge that fails.
   */
  resume(signal?: AbortSignal): Promise<void>;
};

/**
 * The rows of devices go at once, with their credentials, state and profiles; their events and
 * measurements after the commit. A note that the database makes in the same transaction sees to it
 * that these go too, whatever happens in between.
 */
export function createDeviceRemoval({ db, bus, purge, onPurgeError }: RemovalDeps): DeviceRemoval {
  async function finishRemoval(devices: RemovedDevice[]): Promise<void> {
    await inTurns(devices, ({ deviceId, uuid }) => bus.publish('access', { deviceId, uuid }));
    if (devices.length === 0) return;
    await clear(devices.map(({ deviceId }) => deviceId)).catch(onPurgeError);
  }

  /** Of this process: what is being cleared is not left behind. */
  const underWay = new Set<number>();

  async function clear(deviceIds: number[]): Promise<void> {
    for (const deviceId of deviceIds) underWay.add(deviceId);
    try {
      await purge(db, deviceIds);
      await db.query('delete from removed_device where device_id = any($1::bigint[])', [deviceIds]);
    } finally {
      for (const deviceId of deviceIds) underWay.delete(deviceId);
    }
  }

  /** False where nothing is left, or another process is at it. */
  async function clearSome(): Promise<boolean> {
    // While the rows go over other connections, this transaction has no snapshot that would hold back vacuum.
    return db.transaction(async (tx) => {
      const { rows } = await tx.query<{ held: boolean }>(
        'select pg_try_advisory_xact_lock($1) as held',
        [purgeLock],
      );
      if (rows[0]?.held !== true) return false;
      const deviceIds = await listRemoved(tx, [...underWay]);
      if (deviceIds.length > 0) await clear(deviceIds);
      return deviceIds.length > 0;
    });
  }

  return {
    async removeDevice(accountId, uuid, by) {
      const details = { deviceAuthUuid: uuid };
      const entry = { kind: 'device-removed', ...by, details } as const;
      const removed = await db.transaction(async (tx) => {
        await lockUsage(tx, accountId);
        await tx.query('select pg_advisory_xact_lock($1)', [ingestLock]);
        const gone = await deleteDevice(tx, accountId, uuid);
        if (gone.length > 0) await insertEntry(tx, accountId, entry);
        return gone;
      });
      await finishRemoval(removed);
      return removed.length === 1;
    },
    finishRemoval,
    async resume(signal) {
      while (signal?.aborted !== true && (await clearSome()));
    },
  };
}

async function deleteDevice(tx: Sql, accountId: number, uuid: string): Promise<RemovedDevice[]> {
  const { rows } = await tx.query<RemovedDevice>(
    `
      delete from device
       where uuid = $2 and account_id = $1
      returning id as "deviceId", uuid`,
    [accountId, uuid],
  );
  return rows;
}

/** Some that are not among these. */
async function listRemoved(tx: Sql, except: number[]): Promise<number[]> {
  const { rows } = await tx.query<{ deviceId: number }>(
    `
      select device_id as "deviceId"
        from removed_device
       where device_id <> all($1::bigint[])
       order by device_id
       limit $2`,
    [except, devicesAtOnce],
  );
  return rows.map(({ deviceId }) => deviceId);
}
