import type { Bus } from '../bus/bus.ts';
import type { Database, Sql } from '../db/database.ts';
import { ingestLock } from '../db/locks.ts';

export type RemovalDeps = {
  db: Database;
  bus: Bus;
  /** Clears the events and measurements of devices that are gone; may be called twice for one. */
  purge: (db: Database, deviceIds: number[]) => Promise<void>;
  /** Told of a purge that failed; it is made up for by `resume`. */
  onPurgeError: (error: unknown) => void;
};

export type DeviceRemoval = {
  /** Removes a device with everything that belongs to it; false when the account has no such device. */
  removeDevice(accountId: number, uuid: string): Promise<boolean>;
  /** Removes all devices of an account, before the account itself goes. */
  removeDevicesOf(accountId: number): Promise<void>;
  /** Clears what an earlier removal left behind: call it at start, and now and then. */
  resume(): Promise<void>;
};

type Removed = { id: number; uuid: string };

/**
 * The rows of devices go at once, with their credentials, state and profiles; their events and
 * measurements after the commit. A note in the same transaction makes sure that these go too,
 * whatever happens in between.
 */
export function createDeviceRemoval({ db, bus, purge, onPurgeError }: RemovalDeps): DeviceRemoval {
  async function remove(deleteRows: (tx: Sql) => Promise<Removed[]>): Promise<number> {
    const removed = await db.transaction(async (tx) => {
      await tx.query('select pg_advisory_xact_lock($1)', [ingestLock]);
      return deleteRows(tx);
    });
    for (const { id, uuid } of removed) bus.publish('access', { deviceId: id, uuid });
    if (removed.length > 0) await clear(removed.map(({ id }) => id)).catch(onPurgeError);
    return removed.length;
  }

  async function clear(deviceIds: number[]): Promise<void> {
    await purge(db, deviceIds);
    await db.query('delete from removed_device where device_id = any($1::bigint[])', [deviceIds]);
  }

  return {
    async removeDevice(accountId, uuid) {
      const count = await remove((tx) => deleteDevice(tx, accountId, uuid));
      return count === 1;
    },
    async removeDevicesOf(accountId) {
      await remove((tx) => deleteDevicesOf(tx, accountId));
    },
    async resume() {
      const deviceIds = await listRemoved(db);
      if (deviceIds.length > 0) await clear(deviceIds);
    },
  };
}

async function deleteDevice(tx: Sql, accountId: number, uuid: string): Promise<Removed[]> {
  const { rows } = await tx.query<Removed>(
    'delete from device where uuid = $2 and account_id = $1 returning id, uuid',
    [accountId, uuid],
  );
  return rows;
}

async function deleteDevicesOf(tx: Sql, accountId: number): Promise<Removed[]> {
  const { rows } = await tx.query<Removed>(
    'delete from device where account_id = $1 returning id, uuid',
    [accountId],
  );
  return rows;
}

async function listRemoved(db: Sql): Promise<number[]> {
  const { rows } = await db.query<{ device_id: number }>('select device_id from removed_device');
  return rows.map((row) => row.device_id);
}
