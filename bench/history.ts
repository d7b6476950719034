import type pg from 'pg';

/**
 * Spreads events evenly over all devices and these days, the newest an hour old, and compresses what is older than two
 * weeks, as the service's policies do.
 */
export async function fillEvents(
  client: pg.Client,
  { storedEvents, historyDays: days }: { storedEvents: number; historyDays: number },
): Promise<number[]> {
  const { rows } = await client.query<{ id: string }>('select id from device order by id');
  const deviceIds = rows.map(({ id }) => Number(id));
  const each = Math.ceil(storedEvents / deviceIds.length);
  const stepSeconds = (days * 86_400) / each;
  // One transaction per slice of time, in order.
  const slices = Math.max(1, Math.min(days, Math.floor(each / 10)));
  for (let slice = 0; slice < slices; slice += 1) {
    const from = Math.floor((each * slice) / slices);
    const until = Math.floor((each * (slice + 1)) / slices) - 1;
    await client.query(fillStatement, [deviceIds, from, until, stepSeconds, days * 86_400 + 3_600]);
  }
  if (await hasColumnstore(client))
    for (const table of ['event', 'event_sense'])
      await client.query(
        `select compress_chunk(c, true) from show_chunks($1, older_than => interval '14 days') c`,
        [table],
      );
  await client.query('vacuum (analyze) event');
  await client.query('vacuum (analyze) event_sense');
  return deviceIds;
}

// Every fourth event is a change of state, the others belong to senses.
const fillStatement = `
  with made as (
    select device_id, n, ts, (extract(epoch from ts) * 1000)::bigint as ms,
           case when n % 4 = 0 then 'device' else 'sense' end as type
      from generate_series($2::bigint, $3::bigint) n
     cross join unnest($1::bigint[]) as d (device_id)
     cross join lateral (
       select now() + make_interval(secs => n * $4::float8 - $5::float8) as ts) t
  ), stored as (
    insert into event (device_id, type, ts, key, body)
    select device_id, type, ts, 'bench ' || n,
           case type
             when 'device' then json_build_object(
               'event', 'stateChanged', 'cause', json_build_object('engine', engine),
               'newValue', 2, 'oldValue', 1)
             else json_build_object('cause', json_build_object(
               'engine', engine,
               'senses', json_build_array(json_build_object('sId', '0x01', 'val', 26.5, 'ts', ms))))
           end
      from made
     cross join lateral (
       select json_build_object('pId', '5b0e6f5e-2b1f-4f0a-9c61-0f2f7d9b8a10', 'puId', 1, 'stId', 1,
                'evId', 1, 'ts', ms) as engine) e
    returning device_id, type, ts, key, seq, body
  )
  insert into event_sense (device_id, s_id, ts, key, seq, body)
  select device_id, '0x01', ts, key, seq, body from stored where type = 'sense'`;

async function hasColumnstore(client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ found: boolean }>(
    `select current_setting('timescaledb.license', true) = 'timescale' as found`,
  );
  return rows[0]?.found === true;
}
