import { type Actor, entriesValues, insertEntriesFrom, type NewEntry } from '../audit/audit.ts';
import type { Configuration } from '../contract/configuration.ts';
import type { Sql } from '../db/sql.ts';
import { limitOf, today } from '../quotas/quotas.ts';
import type { QuotaSettings } from '../quotas/settings.ts';
import type { WrittenBy } from '../versions/versions.ts';

/** `configuration`: as JSON. `actor`: who registers it; `ts`: when, in ms. */
export type NewDevice = {
  uuid: string;
  connectorId: number;
  configuration: string;
  name: string;
  labels: readonly string[];
  /** The identifier of the secret that its token is derived from. */
  secretId: string;
  actor: Actor;
  ts: number;
};

/** Returns whether all were stored: all or none are, none if that exceeds a quota or if the account is gone. */
export async function insertDevices(
  db: Sql,
  accountId: number,
  added: NewDevice[],
  quotas: Pick<QuotaSettings, 'devices' | 'devicesPerDay'>,
): Promise<boolean> {
  const { devices, devicesPerDay } = quotas;
  const { rowCount } = await db.query({
    // Planning it takes longer than running it.
    name: 'devices-insert',
    text: `
      with counted as (
        insert into account_usage as u (account_id, devices, registrations_day, registrations)
        select id, $6, ${today}, $6 from account
         where id = $1 and removed_at is null
           and $6 <= ${limitOf('$1', 'devices', '$7')}
           and $6 <= ${limitOf('$1', 'devicesPerDay', '$8')}
        on conflict (account_id) do update
           set devices = u.devices + $6,
               registrations_day = excluded.registrations_day,
               registrations = $6 + case when u.registrations_day = excluded.registrations_day
                                         then u.registrations else 0 end
         where not u.is_closed
           and u.devices + $6 <= ${limitOf('$1', 'devices', '$7')}
           and (u.registrations_day <> excluded.registrations_day
                or u.registrations + $6 <= ${limitOf('$1', 'devicesPerDay', '$8')})
        returning account_id
      ), added as (
        insert into device (uuid, account_id, connector_id, configuration, name, labels, token_secret,
                            configured_by, configured_session)
        select n.uuid, account_id, n.connector_id, n.configuration::json, n.name,
               array(select json_array_elements_text(n.labels)), n.secret_id, n.actor, n.session_id
          from counted
         cross join unnest($2::uuid[], $3::integer[], $4::text[], $5::text[], $9::json[],
                           $10::text[], $13::text[], $14::uuid[])
            as n (uuid, connector_id, configuration, name, labels, secret_id, actor, session_id)
        returning id, created_at
      ), audited as (${insertEntriesFrom('counted', 11)})
      insert into device_state (device_id, state_at)
      select id, created_at from added`,
    values: [
      accountId,
      added.map(({ uuid }) => uuid),
      added.map(({ connectorId }) => connectorId),
      added.map(({ configuration }) => configuration),
      added.map(({ name }) => name),
      added.length,
      devices,
      devicesPerDay,
      added.map(({ labels }) => JSON.stringify(labels)),
      added.map(({ secretId }) => secretId),
      // Among these are who added each, and the session.
      ...entriesValues(added.map(toEntry)),
    ],
  });
  return rowCount === added.length;
}

function toEntry({ uuid, actor, ts }: NewDevice): NewEntry {
  return { kind: 'device-added', actor, ts, details: { deviceAuthUuid: uuid } };
}

/** A configuration as the table `device` keeps it: as JSON, with the name beside it. */
export function toStored(configuration: Configuration): Pick<NewDevice, 'configuration' | 'name'> {
  // PostgreSQL's text type takes every character except NUL.
  const name = (configuration.device.name ?? '').replaceAll('\0', '\uFFFD');
  return { configuration: JSON.stringify(configuration), name };
}

/** Null if the account has no such device. */
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

const theDevice: Actor = { by: 'device', sessionId: null, address: null };

/**
 * Replaces configurations of devices; the last one of a device counts. By default the
 * devices themselves sent them. Whoever calls it must have locked the states of
 * the devices, and makes what was computed from the previous configurations invalid.
 */
export async function replaceConfigurations(
  tx: Sql,
  changes: { deviceId: number; configuration: Configuration }[],
  { actor, reason }: Pick<WrittenBy, 'actor' | 'reason'> = { actor: theDevice },
): Promise<void> {
  const last = [...new Map(changes.map((change) => [change.deviceId, change])).values()];
  if (last.length === 0) return;
  const stored = last.map(({ configuration }) => toStored(configuration));
  await tx.query({
    name: 'devices-replace-configurations',
    text: `
      update device d
         set configuration = n.configuration::json, name = n.name,
             configured_at = case when n.is_other then now() else d.configured_at end,
             configuration_version = d.configuration_version + n.is_other::integer,
             configured_by = case when n.is_other then $4 else d.configured_by end,
             configured_session = case when n.is_other then $5::uuid else d.configured_session end,
             configured_reason = case when n.is_other then $6 else d.configured_reason end
        from (
          select n.*, n.configuration <> before.configuration::text as is_other
            from unnest($1::bigint[], $2::text[], $3::text[]) as n (device_id, configuration, name)
            join device before on before.id = n.device_id
        ) as n
       where d.id = n.device_id`,
    values: [
      last.map(({ deviceId }) => deviceId),
      stored.map(({ configuration }) => configuration),
      stored.map(({ name }) => name),
      actor.by,
      actor.sessionId,
      reason ?? null,
    ],
  });
}
