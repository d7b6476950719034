import { type DoneBy, insertEntries, type NewEntry } from '../audit/audit.ts';
import type { Bus } from '../bus/bus.ts';
import type { Database } from '../db/database.ts';
import { giveWay, haltIngest } from '../db/locks.ts';
import type { Sql } from '../db/sql.ts';
import { forEachYielding } from '../lib/event-loop.ts';
import { lockUsage } from '../quotas/quotas.ts';

type RemovedDevice = { deviceId: number; uuid: string };

export type DeviceRemoval = {
  /** Removes a device with everything that belongs to it; false if the account has no such device. */
  removeDevice(accountId: number, uuid: string, by: DoneBy): Promise<boolean>;
  /** Removes many in the caller's transaction and returns those that existed. Call `finishRemoval` after the commit. */
  removeWithin(
    tx: Sql,
    accountId: number,
    of: { uuids: readonly string[]; labels: readonly string[] | null; by: DoneBy },
  ): Promise<RemovedDevice[]>;
  /**
   * Closes the connections of devices that a commit has marked. What belonged to them is deleted later; this does not
   * wait for it.
   */
  finishRemoval(devices: RemovedDevice[]): Promise<void>;
};

/**
 * A removal marks devices. From its commit on, nobody can find them or anything of theirs, and nothing is stored for
 * them. Their rows are then deleted in small batches, however many there are (`history/clear-removed.ts`).
 */
export function createDeviceRemoval({
  db,
  bus,
  startClearing,
}: {
  db: Database;
  bus: Bus;
  /** Devices were marked: starts deleting what belonged to them. */
  startClearing: () => void;
}): DeviceRemoval {
  const removeWithin: DeviceRemoval['removeWithin'] = async (tx, accountId, of) => {
    const { by } = of;
    await lockUsage(tx, accountId);
    const removed = await markHalting(tx, (marking) => markDevices(marking, accountId, of));
    const entries = removed.map(({ uuid }): NewEntry => {
      return { kind: 'device-removed', ...by, details: { deviceAuthUuid: uuid } };
    });
    if (entries.length > 0) await insertEntries(tx, accountId, entries);
    return removed;
  };

  async function finishRemoval(devices: RemovedDevice[]): Promise<void> {
    await forEachYielding(devices, ({ deviceId, uuid }) =>
      bus.publish('access', { deviceId, uuid }),
    );
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
  };
}

/**
 * Detaches some devices from a removed account, as a removal does; returns how many. Their connections ended with the
 * account.
 */
export async function detachDevices(
  db: Database,
  bus: Pick<Bus, 'publish'>,
  accountId: number,
  limit: number,
): Promise<number> {
  const detached = await db.transaction(async (tx) => {
    const { rows } = await tx.query<{ uuid: string }>(
      'select uuid from device where account_id = $1 order by id limit $2',
      [accountId, limit],
    );
    const of = { uuids: rows.map(({ uuid }) => uuid), labels: null };
    return of.uuids.length === 0
      ? []
      : markHalting(tx, (marking) => markDevices(marking, accountId, of));
  });
  // For processes of earlier versions, which drop what they cached of removed devices but know no removed accounts.
  await forEachYielding(detached, ({ deviceId, uuid }) =>
    bus.publish('access', { deviceId, uuid }),
  );
  return detached.length;
}

/** Marks while ingest is halted; if that takes too long, gives way and tries again. */
function markHalting<T>(tx: Sql, mark: (tx: Sql) => Promise<T>): Promise<T> {
  return giveWay(async (waitMs) => {
    await tx.query('savepoint marking');
    try {
      await haltIngest(tx, waitMs);
      return await mark(tx);
    } catch (error) {
      await tx.query('rollback to savepoint marking');
      throw error;
    }
  });
}

/**
 * One statement, and few rows for each device, because ingest is halted meanwhile. Without its row in `device_state` a
 * device has neither evidence nor a timer, and whatever ingest has cached of it is invalid.
 */
async function markDevices(
  tx: Sql,
  accountId: number,
  { uuids, labels }: { uuids: readonly string[]; labels: readonly string[] | null },
): Promise<RemovedDevice[]> {
  const { rows } = await tx.query<RemovedDevice>(
    `
      with removed as (
        select id, uuid, name
          from device
         where uuid = any($2::uuid[]) and account_id = $1 and ($3::text[] is null or labels && $3)
         order by id
           for update
      ), marked as (
        update device d
           set account_id = null, uuid = gen_random_uuid(), name = '', labels = '{}',
               configuration = '{}'
          from removed r
         where d.id = r.id
      ), stateless as (
        delete from device_state where device_id in (select id from removed)
      ), unwatched as (
        delete from refused_login where device_id in (select id from removed)
      ), noted as (
        insert into removed_device (device_id, account_id)
        select id, $1 from removed
      ), named as (
        insert into removed_uuid (uuid, account_id, name)
        select uuid, $1, name from removed
        on conflict (uuid) do nothing
      ), counted as (
        update account_usage
           set devices = greatest(0, devices - (select count(*) from removed))
         where account_id = $1
      )
      select id as "deviceId", uuid from removed`,
    [accountId, uuids, labels],
  );
  return rows;
}
