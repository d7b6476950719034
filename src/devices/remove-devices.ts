import type { DoneBy, NewEntry } from '../audit/entry.ts';
import { insertEntries } from '../audit/queries.ts';
import type { Bus } from '../bus/bus.ts';
import type { Database } from '../db/database.ts';
import type { Sql } from '../db/sql.ts';
import { ingestLock, purgeLock } from '../db/locks.ts';
import { inTurns } from '../lib/in-turns.ts';
import { lockUsage } from '../quotas/queries.ts';

/** So many devices are cleared before it is looked whether to stop. */
const devicesAtOnce = 50;

export type RemovedDevice = { deviceId: number; uuid: string };

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
  /** The same of many within the caller's transaction; gives those that were there. `finishRemoval` follows. */
  removeWithin(
    tx: Sql,
    accountId: number,
    of: { uuids: readonly string[]; labels: readonly string[] | null; by: DoneBy },
  ): Promise<RemovedDevice[]>;
  /**
   * What follows the commit that removed the rows of devices: their connections end. Their history goes
   * after that, and is not waited for.
   */
  finishRemoval(devices: RemovedDevice[]): Promise<void>;
  /**
   * Clears what removals have left. One process at a time does; others leave it to that one. Rejects at the
   * first purge that fails.
   */
  resume(signal?: AbortSignal): Promise<void>;
  /** Resolves when nothing is being cleared here. */
  idle(): Promise<void>;
  /** Clears no more, and waits for what is under way. The next process goes on. */
  close(): Promise<void>;
};

/**
 * The rows of devices go at once, with their credentials, state and profiles; their events and
 * measurements, which nobody can read from then on, after the commit. A note that the database makes in the
 * same transaction sees to it that these go too, whatever happens in between.
 */
export function createDeviceRemoval({ db, bus, purge, onPurgeError }: RemovalDeps): DeviceRemoval {
  const closing = new AbortController();
  let clearing: Promise<void> | null = null;
  let isWanted = false;

  /** Where it is being cleared already, once more after that. */
  function startClearing(): void {
    isWanted = true;
    clearing ??= clearWanted()
      .catch(onPurgeError)
      .finally(() => (clearing = null));
  }

  async function clearWanted(): Promise<void> {
    while (isWanted && !closing.signal.aborted) {
      isWanted = false;
      await resume(closing.signal);
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
      const deviceIds = await listRemoved(tx);
      if (deviceIds.length === 0) return false;
      await purge(db, deviceIds);
      await db.query('delete from removed_device where device_id = any($1::bigint[])', [deviceIds]);
      return true;
    });
  }

  async function resume(signal?: AbortSignal): Promise<void> {
    while (signal?.aborted !== true && (await clearSome()));
  }

  const removeWithin: DeviceRemoval['removeWithin'] = async (tx, accountId, of) => {
    const { by } = of;
    await lockUsage(tx, accountId);
    await tx.query('select pg_advisory_xact_lock($1)', [ingestLock]);
    const removed = await deleteDevices(tx, accountId, of);
    const entries = removed.map(({ uuid }): NewEntry => {
      return { kind: 'device-removed', ...by, details: { deviceAuthUuid: uuid } };
    });
    if (entries.length > 0) await insertEntries(tx, accountId, entries);
    return removed;
  };

  async function finishRemoval(devices: RemovedDevice[]): Promise<void> {
    await inTurns(devices, ({ deviceId, uuid }) => bus.publish('access', { deviceId, uuid }));
    if (devices.length > 0) startClearing();
  }

  return {
    async removeDevice(accountId, uuid, by) {
      const of = { uuids: [uuid], labels: null, by };
      const removed = await db.transaction((tx) => removeWithin(tx, accountId, of));
      await finishRemoval(removed);
      if (removed.length > 0) bus.publish('fleet', { accountId });
      return removed.length === 1;
    },
    removeWithin,
    finishRemoval,
    resume,
    async idle() {
      await clearing;
    },
    async close() {
      closing.abort();
      await clearing;
    },
  };
}

async function deleteDevices(
  tx: Sql,
  accountId: number,
  { uuids, labels }: { uuids: readonly string[]; labels: readonly string[] | null },
): Promise<RemovedDevice[]> {
  const { rows } = await tx.query<RemovedDevice>(
    `
      with removed as (
        delete from device
         where uuid = any($2::uuid[]) and account_id = $1 and ($3::text[] is null or labels && $3)
        returning id, uuid, name
      ), noted as (
        insert into removed_uuid (uuid, account_id, name)
        select uuid, $1, name from removed
        on conflict (uuid) do nothing
      )
      select id as "deviceId", uuid from removed`,
    [accountId, uuids, labels],
  );
  return rows;
}

/** Some of which history may be left. */
async function listRemoved(tx: Sql): Promise<number[]> {
  const { rows } = await tx.query<{ deviceId: number }>(
    `
      select device_id as "deviceId"
        from removed_device
       order by device_id
       limit $1`,
    [devicesAtOnce],
  );
  return rows.map(({ deviceId }) => deviceId);
}
