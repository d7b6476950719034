import type { DoneBy } from '../audit/entry.ts';
import { insertEntry } from '../audit/queries.ts';
import type { Bus } from '../bus/bus.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { ingestLock } from '../db/locks.ts';
import { inTurns } from '../lib/in-turns.ts';
import { lockUsage } from '../quotas/queries.ts';

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
  /** Clears what an earlier removal left behind: for the start, and now and then. */
  resume(): Promise<void>;
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

  async function clear(deviceIds: number[]): Promise<void> {
    await purge(db, deviceIds);
    await db.query('delete from removed_device where device_id = any($1::bigint[])', [deviceIds]);
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
    async resume() {
      const deviceIds = await listRemoved(db);
      if (deviceIds.length > 0) await clear(deviceIds);
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

async function listRemoved(db: Sql): Promise<number[]> {
  const { rows } = await db.query<{ device_id: number }>('select device_id from removed_device');
  return rows.map((row) => row.device_id);
}
