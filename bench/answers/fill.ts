import type { Client } from 'pg';

const deviceCount = 10_000;
const senseIds = Array.from({ length: 1_000 }, (_, n) => `0x${(n + 4_096).toString(16)}`);

/** The largest allowed evidence of an event: it fills `evidenceBytes`. */
const evidence = `'[' || repeat('{"sId":"0x1000","val":21.123456789,"ts":1795219200000},', 280) || '{}]'`;

/**
 * Fills an account with the most that lists can contain: 10,000 devices, the first of them with a thousand senses,
 * 300,000 measurements, 1,000 events of 16 KB and 1,000 rejections.
 */
export async function fillAccount(client: Client, email: string): Promise<string> {
  const { rows } = await client.query<{ id: string }>('select id from account where email = $1', [
    email,
  ]);
  const accountId = rows[0]?.id;
  const { rows: devices } = await client.query<{ id: string; uuid: string }>(
    `with made as (
       insert into device (account_id, connector_id, configuration, name)
       select $1, 1, '{}', repeat('n', 100) from generate_series(1, $2) returning id, uuid
     ), state as (
       insert into device_state (device_id) select id from made)
     select id, uuid from made order by id`,
    [accountId, deviceCount],
  );
  const [first] = devices;
  if (!first) throw new Error('No device was made.');
  const { id } = first;
  await client.query(
    `with series as (
       insert into series (device_id, s_id) select $1, unnest($2::text[]) returning id)
     insert into measurement (series_id, ts, val)
     select id, now() - n * interval '1 minute', 21.123456789 + n / 7.0
       from series cross join generate_series(1, 300) n`,
    [id, senseIds],
  );
  await client.query(
    `insert into event (device_id, type, ts, key, body)
     select $1, 'sense', now() - n * interval '1 minute', 'key ' || n,
            ('{"cause":{"engine":{"puId":1,"stId":1,"evId":1},"senses":' || ${evidence} || '}}')::json
       from generate_series(1, 1000) n`,
    [id],
  );
  await client.query(
    `insert into rejection (device_id, message_id, item, rejected_at, topic, reason, message, path, payload)
     select $1, gen_random_uuid(), n, now(), 'measurements', 'invalid', 'is wrong', '/0', repeat('p', 1000)
       from generate_series(1, 1000) n`,
    [id],
  );
  await client.query(
    `insert into purpose (account_id, name, body)
     select $1, repeat('n', 1000), json_build_object('puId', n, 'name', repeat('n', 1000), 'x', repeat('x', 20000))
       from generate_series(1, 1000) n`,
    [accountId],
  );
  await client.query('analyze');
  return first.uuid;
}
