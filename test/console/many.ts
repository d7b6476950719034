import type { Database } from '../../src/db/database.ts';

/** An account's devices: every `onlineEvery`-th is connected; the others were last seen minutes to days ago. */
type Many = { email: string; count: number; onlineEvery: number };

/** Registers many devices by SQL: `Box 00001` and so on, every seventh with the label `cold chain`. */
export async function addDevices(db: Database, { email, count, onlineEvery }: Many): Promise<void> {
  await db.query(
    `with added as (
       insert into device (account_id, connector_id, name, labels, configuration)
       select a.id, 1, 'Box ' || lpad(n::text, 5, '0'),
              case when n % 7 = 0 then array['cold chain'] else '{}' end,
              json_build_object(
                'device', json_build_object('name', 'Box ' || lpad(n::text, 5, '0'),
                                            'serial', 'SN-' || n),
                'module', json_build_array())
         from generate_series(1, $2::integer) n
         join account a on a.email = $1
       returning id, substr(name, 5)::integer as n
     ), states as (
       insert into device_state (device_id) select id from added
     )
     insert into presence (device_id, connected, last_seen_at)
     select id, n % $3::integer = 0,
            now() - case when n % $3::integer = 0 then 0 else n % 3000 end * interval '1 minute'
       from added`,
    [email, count, onlineEvery],
  );
  for (const table of ['device', 'device_state', 'presence']) await db.query(`analyze ${table}`);
}
