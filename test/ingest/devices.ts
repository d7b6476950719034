import type { Configuration } from '../../src/contract/configuration.ts';
import type { Purpose } from '../../src/contract/purpose.ts';
import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import type { Database } from '../../src/db/database.ts';

export const configuration: Configuration = {
  device: { name: 'probe' },
  module: [
    { moduleId: 'm1', senses: [{ sId: '0x01', min: -50, max: 1_000_000 }, { sId: '0x02' }] },
  ],
};

/** A device of an account of its own. */
export async function insertDevice(db: Database): Promise<DeviceIdentity> {
  const [device] = await insertDevices(db, 1);
  return device as DeviceIdentity;
}

/** Devices of a new account. */
export async function insertDevices(db: Database, count: number): Promise<DeviceIdentity[]> {
  const { rows } = await db.query<DeviceIdentity>(
    `with owner as (
       insert into account (email, password_hash) values (gen_random_uuid() || '@example.org', '')
       returning id
     ), made as (
       insert into device (account_id, connector_id, configuration)
       select id, 1, $1 from owner, generate_series(1, $2::int) returning id, uuid, account_id
     ), state as (
       insert into device_state (device_id) select id from made
     )
     select id as "deviceId", uuid, account_id as "accountId" from made order by id`,
    [JSON.stringify(configuration), count],
  );
  return rows;
}

/** A profile that waits for the device's answer, or for its next message. */
export async function installProfile(
  db: Database,
  device: DeviceIdentity,
  purposes: Purpose[],
): Promise<string> {
  return installOn(db, [device], purposes);
}

/** The same on several devices of an account. */
export async function installOn(
  db: Database,
  devices: DeviceIdentity[],
  purposes: Purpose[],
): Promise<string> {
  const { rows } = await db.query<{ id: string }>(
    `with content as (
       insert into profile_content (account_id, hash, bytes, purposes)
       values ($1, gen_random_uuid()::text::bytea, octet_length($2), $2::json) returning id
     ), made as (
       insert into profile (account_id, content_id) select $1, id from content returning id
     ), waits as (
       insert into device_profile (device_id, profile_id) select unnest($3::bigint[]), id from made
     ), raised as (
       update device_state set version = version + 1 where device_id = any($3)
     )
     select id from made`,
    [devices[0]?.accountId, JSON.stringify(purposes), devices.map(({ deviceId }) => deviceId)],
  );
  return rows[0]?.id ?? '';
}
