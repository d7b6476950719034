import type pg from 'pg';

const devices = 100;
const sensesEach = 8;
const slice = 1_000_000;

/**
 * Fills an empty database with that many rows of history over the last 90 days: of ten rows, eight are measurements,
 * one is an event, and one is the same event by its sense.
 */
export async function fillRows(client: pg.Client, rows: number): Promise<void> {
  await client.query(`
    with a as (
      insert into account (email, password_hash) values ('many@example.org', '-') returning id
    ), d as (
      insert into device (account_id, connector_id, configuration)
      select a.id, 1, '{}' from a, generate_series(1, ${devices}) returning id
    )
    insert into series (device_id, s_id)
    select d.id, '0x0' || s from d, generate_series(1, ${sensesEach}) s`);
  const { rows: ids } = await client.query<{ series: string[]; devices: string[] }>(
    `select array(select id from series order by id) as series,
            array(select id from device order by id) as devices`,
  );
  const { series = [], devices: owners = [] } = ids[0] ?? {};
  const [measurements, events] = [Math.ceil(rows * 0.8), Math.ceil(rows * 0.1)];
  for (let from = 0; from < measurements; from += slice) {
    const until = Math.min(from + slice, measurements) - 1;
    await client.query(
      `insert into measurement (series_id, ts, val)
       select ($1::bigint[])[1 + n % ${devices * sensesEach}],
              date_trunc('milliseconds', now()) - interval '90 days' * (1 - n / $4::float8),
              round((20 + 10 * sin(n / 1e4))::numeric, 2)
         from generate_series($2::bigint, $3::bigint) n
           on conflict do nothing`,
      [series, from, until, measurements],
    );
  }
  for (let from = 0; from < events; from += slice) {
    const until = Math.min(from + slice, events) - 1;
    await client.query(
      `with stored as (
         insert into event (device_id, type, ts, key, body)
         select ($1::bigint[])[1 + n % ${devices}], 'sense',
                date_trunc('milliseconds', now()) - interval '90 days' * (1 - n / $4::float8), n::text,
                json_build_object('cause', json_build_object(
                  'engine', json_build_object('pId', gen_random_uuid(), 'puId', 1, 'stId', 1, 'evId', n % 9),
                  'senses', json_build_array(json_build_object('sId', '0x01', 'val', 26.5))))
           from generate_series($2::bigint, $3::bigint) n
         returning device_id, ts, key, seq, body
       )
       insert into event_sense (device_id, s_id, ts, key, seq, body)
       select device_id, '0x01', ts, key, seq, body from stored`,
      [owners, from, until, events],
    );
  }
  await client.query('analyze');
}
