import type { Database } from '../../src/db/database.ts';

/**
 * Registers so many devices of the only account, by SQL: `Box 00001` and so on, a tenth of them online, the others
 * last seen minutes to days ago.
 */
export async function addDevices(db: Database, count: number): Promise<void> {
  await db.query(
    `with added as (
       insert into device (account_id, connector_id, name, labels, configuration)
       select a.id, coalesce((select min(connector_id) from device), 1),
              'Box ' || lpad(n::text, 5, '0'),
              case when n % 7 = 0 then array['cold chain'] else '{}' end,
              json_build_object('device', json_build_object('name', 'Box ' || lpad(n::text, 5, '0'),
                'serial', 'SN-' || n), 'module', json_build_array())
         from generate_series(1, $1::integer) n, account a
       returning id
     ), states as (
       insert into device_state (device_id) select id from added
     )
     insert into presence (device_id, connector_id, connected, last_seen_at)
     select id, null, id % 10 = 0, now() - id % 3000 * interval '1 minute' from added`,
    [count],
  );
  for (const table of ['device', 'device_state', 'presence']) await db.query(`analyze ${table}`);
}
