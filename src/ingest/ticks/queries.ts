import type { DeviceIdentity } from '../../contract/uplink.ts';
import type { Sql } from '../../db/sql.ts';

/** A device that time has come to; `dueTs`: since when, ms. `isConnected`: to some process, as far as is known. */
export type DueDevice = DeviceIdentity & {
  connectorId: number;
  dueTs: number;
  isConnected: boolean;
};

type Row = {
  device_id: number;
  uuid: string;
  account_id: number;
  connector_id: number;
  due_at: number;
  connected: boolean;
};

const columns = `
  due.device_id, d.uuid, due.account_id, due.due_at,
  coalesce(p.connector_id, d.connector_id) as connector_id, coalesce(p.connected, false) as connected`;

const joined = `
  join device d on d.id = due.device_id
  left join presence p on p.device_id = due.device_id`;

const next = 'coalesce(due.retry_at, due.due_at)';

/** A removed device is not due; one of a removed account is, until that is found out. */
const isThere = `
  not exists (select from account a where a.id = due.account_id and a.removed_at is not null)`;

/** Those that are due from `fromTs` (absent: ever) up to `toTs`, the one that is due longest first. */
export async function listDue(
  db: Sql,
  { fromTs, toTs, limit }: { fromTs?: number; toTs: number; limit: number },
): Promise<DueDevice[]> {
  const { rows } = await db.query<Row>(
    `select ${columns}
       from (
         select * from device_due due
          where ${next} > ${fromTs === undefined ? "'-infinity'" : 'ms_to_timestamp($3)'}
            and ${next} <= ms_to_timestamp($1)
            and ${isThere}
          order by ${next}
          limit $2) due
       ${joined}
      order by ${next}`,
    fromTs === undefined ? [toTs, limit] : [toTs, limit, fromTs],
  );
  return rows.map(toDevice);
}

/**
 * The same of each account but these, `perAccount` at most of one: an account of which much is due is not to
 * hide what is due of others. Walks from account to account in the index.
 */
export async function listDueOfEach(
  db: Sql,
  { toTs, perAccount, but }: { toTs: number; perAccount: number; but: number[] },
): Promise<DueDevice[]> {
  const { rows } = await db.query<Row>(
    `with recursive owner as (
       (select account_id from device_due order by account_id limit 1)
       union all
       select following.account_id
         from owner
        cross join lateral (
          select account_id from device_due
           where account_id > owner.account_id
           order by account_id limit 1) following
     )
     select ${columns}
       from owner
      cross join lateral (
        select * from device_due due
         where due.account_id = owner.account_id
           and ${next} <= ms_to_timestamp($1)
           and ${isThere}
         order by ${next}
         limit $2) due
       ${joined}
      where owner.account_id <> all($3::bigint[])
      order by ${next}`,
    [toTs, perAccount, but],
  );
  return rows.map(toDevice);
}

/** A tick could not be stored: it is tried again in a minute, then two, up to an hour. */
export async function putOffTick(db: Sql, deviceId: number, nowTs: number): Promise<void> {
  await db.query(
    `update device_due
        set failures = least(failures + 1, 10),
            retry_at = ms_to_timestamp($2)
                     + least(interval '1 hour', interval '1 minute' * (2 ^ failures))
      where device_id = $1`,
    [deviceId, nowTs],
  );
}

function toDevice(row: Row): DueDevice {
  return {
    deviceId: row.device_id,
    uuid: row.uuid,
    accountId: row.account_id,
    connectorId: row.connector_id,
    dueTs: row.due_at,
    isConnected: row.connected,
  };
}
