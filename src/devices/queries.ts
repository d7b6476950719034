import type { Configuration } from '../core/configuration.ts';
import type { Sql } from '../db/sql.ts';
import { limitOf, today } from '../quotas/queries.ts';
import type { QuotaSettings } from '../quotas/settings.ts';

/** What opens a device's door: `previous` says that the token before this version does too. */
export type Access = {
  deviceId: number;
  uuid: string;
  accountId: number;
  version: number;
  previous: boolean;
};

type AccessRow = {
  id: number;
  uuid: string;
  account_id: number;
  token_version: number;
  previous_token_accepted: boolean;
};

/** By uuid; devices that do not exist are left out. */
export async function listAccess(db: Sql, uuids: string[]): Promise<Map<string, Access>> {
  const { rows } = await db.query<AccessRow>({
    name: 'devices-access',
    text: `
      select id, uuid, account_id, token_version, previous_token_accepted
        from device
       where uuid = any($1::uuid[])`,
    values: [uuids],
  });
  return new Map(
    rows.map((row) => [
      row.uuid,
      {
        deviceId: row.id,
        uuid: row.uuid,
        accountId: row.account_id,
        version: row.token_version,
        previous: row.previous_token_accepted,
      },
    ]),
  );
}

/** Says whether this call was the one that retired it. */
export async function retirePreviousToken(
  db: Sql,
  deviceId: number,
  version: number,
): Promise<boolean> {
  const { rowCount } = await db.query(
    `
      update device
         set previous_token_accepted = false
       where id = $1 and token_version = $2 and previous_token_accepted`,
    [deviceId, version],
  );
  return rowCount === 1;
}

/** The new version; null when the account has no such device. */
export async function raiseTokenVersion(
  db: Sql,
  accountId: number,
  uuid: string,
  keepPrevious: boolean,
): Promise<{ deviceId: number; version: number } | null> {
  const { rows } = await db.query<{ id: number; token_version: number }>(
    `
      update device
         set token_version = token_version + 1, previous_token_accepted = $3
       where uuid = $2 and account_id = $1
      returning id, token_version`,
    [accountId, uuid, keepPrevious],
  );
  const [row] = rows;
  return row ? { deviceId: row.id, version: row.token_version } : null;
}

export type NewDevice = {
  accountId: number;
  uuid: string;
  connectorId: number;
  configuration: Configuration;
};

/** Says whether it was stored: not beyond a quota, nor where the account is gone. */
export async function insertDevice(
  db: Sql,
  device: NewDevice,
  quotas: Pick<QuotaSettings, 'devices' | 'devicesPerDay'>,
): Promise<boolean> {
  const { accountId, uuid, connectorId, configuration } = device;
  const { devices, devicesPerDay } = quotas;
  const name = nameOf(configuration);
  const { rowCount } = await db.query(
    `
      with counted as (
        insert into account_usage as u (account_id, devices, registrations_day, registrations)
        select id, 1, ${today}, 1 from account where id = $1
        on conflict (account_id) do update
           set devices = u.devices + 1,
               registrations_day = excluded.registrations_day,
               registrations = 1 + case when u.registrations_day = excluded.registrations_day
                                        then u.registrations else 0 end
         where u.devices < ${limitOf('$1', 'devices', '$6')}
           and (u.registrations_day <> excluded.registrations_day
                or u.registrations < ${limitOf('$1', 'devicesPerDay', '$7')})
        returning account_id
      ), added as (
        insert into device (uuid, account_id, connector_id, configuration, name)
        select $2, account_id, $3, $4::text::json, $5 from counted
        returning id, created_at
      )
      insert into device_state (device_id, state_at)
      select id, created_at from added`,
    [accountId, uuid, connectorId, JSON.stringify(configuration), name, devices, devicesPerDay],
  );
  return rowCount === 1;
}

/** PostgreSQL's text holds every character but NUL. */
export function nameOf({ device }: Configuration): string {
  return (device.name ?? '').replaceAll('\0', '\uFFFD');
}

/** Null when the account has no such device. */
export async function findDeviceId(
  db: Sql,
  accountId: number,
  uuid: string,
): Promise<number | null> {
  const { rows } = await db.query<{ id: number }>(
    'select id from device where uuid = $2 and account_id = $1',
    [accountId, uuid],
  );
  return rows[0]?.id ?? null;
}

/** What devices told of themselves, within ingest's transaction; the last word of each counts. */
export async function replaceConfigurations(
  tx: Sql,
  changes: { deviceId: number; configuration: Configuration }[],
): Promise<void> {
  const last = [...new Map(changes.map((change) => [change.deviceId, change])).values()];
  if (last.length === 0) return;
  await tx.query({
    name: 'devices-replace-configurations',
    text: `
      update device d
         set configuration = n.configuration::json, name = n.name, configured_at = now()
        from unnest($1::bigint[], $2::text[], $3::text[]) as n (device_id, configuration, name)
       where d.id = n.device_id`,
    values: [
      last.map(({ deviceId }) => deviceId),
      last.map(({ configuration }) => JSON.stringify(configuration)),
      last.map(({ configuration }) => nameOf(configuration)),
    ],
  });
}
