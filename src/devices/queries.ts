import { entryValues, insertEntryFrom, type Actor } from '../audit/entry.ts';
import type { Configuration } from '../core/configuration.ts';
import type { Sql } from '../db/sql.ts';
import { limitOf, today } from '../quotas/queries.ts';
import type { QuotaSettings } from '../quotas/settings.ts';

export type NewDevice = {
  accountId: number;
  uuid: string;
  connectorId: number;
  configuration: Configuration;
  /** Who registers it, and when. */
  actor: Actor;
  ts: number;
};

/** Says whether it was stored: not beyond a quota, nor where the account is gone. */
export async function insertDevice(
  db: Sql,
  device: NewDevice,
  quotas: Pick<QuotaSettings, 'devices' | 'devicesPerDay'>,
): Promise<boolean> {
  const { accountId, uuid, connectorId, configuration, actor, ts } = device;
  const details = { deviceAuthUuid: uuid };
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
      ), audited as (${insertEntryFrom('counted', 8)})
      insert into device_state (device_id, state_at)
      select id, created_at from added`,
    [
      accountId,
      uuid,
      connectorId,
      JSON.stringify(configuration),
      name,
      devices,
      devicesPerDay,
      ...entryValues({ kind: 'device-added', actor, ts, details }),
    ],
  );
  return rowCount === 1;
}

/** PostgreSQL's text holds every character but NUL. */
export function nameOf({ device }: Configuration): string {
  return (device.name ?? '').replaceAll('\0', '\uFFFD');
}

export type ListedDevice = {
  uuid: string;
  token_version: number;
  name: string;
  pu_id: number;
  st_id: number;
  state_at: number;
  connected: boolean | null;
  last_seen_at: number | null;
};

/** In the order of their registration. */
export async function listDevices(db: Sql, accountId: number): Promise<ListedDevice[]> {
  const { rows } = await db.query<ListedDevice>(
    `
      select d.uuid, d.token_version, d.name, s.pu_id, s.st_id, s.state_at,
             p.connected, p.last_seen_at
        from device d
        join device_state s on s.device_id = d.id
        left join presence p on p.device_id = d.id
       where d.account_id = $1
       order by d.created_at, d.id`,
    [accountId],
  );
  return rows;
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
