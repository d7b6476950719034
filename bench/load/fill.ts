import type { Database } from '../../src/db/database.ts';
import { readHistoryKind } from '../../src/history/retention.ts';

export type Size = { devices: number; events: number; measurements: number };

const days = 90;

/** Eight senses per device alternate. One event in a thousand is of a rare sense, and one in ten is of the device. */
export const senses = Array.from({ length: 8 }, (_, i) => `0x1${i}`);
export const rareSense = '0xff';

/** An additional device with a single sense, measured every minute. */
const minuteSense = '0x1';
export const minuteDevice = ({ devices }: Size): number => devices + 1;

/**
 * Fills the history of 90 days up to `untilTs` (ms), day by day as it would have arrived, and leaves it as
 * TimescaleDB's jobs would: compressed except for the newest days, with the aggregate up to date.
 */
export async function fill(
  db: Database,
  size: Size,
  untilTs: number,
  tell: (line: string) => void,
): Promise<void> {
  const startedMs = performance.now();
  const kind = await readHistoryKind(db);
  const { rows } = await db.query<{ id: number }>(
    `insert into account (email, password_hash) values ('bench', '') returning id`,
  );
  await db.query(
    `insert into device (account_id, connector_id, configuration)
     select $1, 1, '{}' from generate_series(1, $2)`,
    [rows[0]?.id, size.devices + 1],
  );
  await db.query(
    `insert into series (device_id, s_id)
     select d, s_id from generate_series(1, $1::bigint) d, unnest($2::text[]) s_id
      union all
     select $3, '${minuteSense}'`,
    [size.devices, senses, minuteDevice(size)],
  );
  for (let day = 0; day < days; day += 1) {
    const dayTs = untilTs - (days - day) * 86_400_000;
    await Promise.all([
      db.query(eventsOfDay, [size.devices, share(size.events, size, day), dayTs, day]),
      db.query(measurementsOfDay, [size.devices, share(size.measurements, size, day), dayTs]),
      db.query(minutesOfDay, [size.devices + 1, dayTs]),
    ]);
    if ((day + 1) % 10 === 0) {
      const seconds = Math.round((performance.now() - startedMs) / 1_000);
      tell(`  ${day + 1} of ${days} days after ${seconds} s`);
    }
  }
  if (kind === 'timescaledb') await settle(db, tell);
  for (const table of ['measurement', 'event', 'event_sense']) {
    await db.query(`vacuum (analyze) ${table}`);
  }
}

/** How many of these rows a device gets on this day. */
function share(rows: number, { devices }: Size, day: number): number {
  const each = rows / devices / days;
  return Math.floor(each * (day + 1)) - Math.floor(each * day);
}

async function settle(db: Database, tell: (line: string) => void): Promise<void> {
  for (const [table, after] of [
    ['measurement', '3 days'],
    ['event', '14 days'],
    ['event_sense', '14 days'],
  ]) {
    tell(`  compressing ${table}`);
    await db.query(
      `select count(compress_chunk(chunk, true)) from show_chunks($1::regclass, older_than => $2::interval) chunk`,
      [table, after],
    );
  }
  tell('  refreshing the aggregate');
  await db.query(
    `call refresh_continuous_aggregate('measurement_hour', null, now() - interval '1 hour')`,
  );
}

const engine = `{"pId":"5b0e6f5e-2b1f-4f0a-9c61-0f2f7d9b8a10","puId":1,"stId":1,"evId":1,"ts":1795219200000}`;

const eventsOfDay = `
  with made as (
    select device_id,
           case when n % 10 = 0 then 'device' else 'sense' end as type,
           ms_to_timestamp($3::bigint) + n * interval '1 day' / $2::integer + device_id * interval '1 ms' as ts,
           $4::integer || '.' || n as key,
           case when (n + 7 * $4::integer + 13 * device_id) % 1000 = 1 then '${rareSense}'
                else '0x1' || (n / 10 + n) % ${senses.length} end as s_id
      from generate_series(1, $1::integer) device_id, generate_series(1, $2::integer) n
     order by n, device_id
  ), stored as (
    insert into event (device_id, type, ts, key, body)
    select device_id, type, ts, key,
           case type
             when 'device' then
               '{"event":"purposeChanged","cause":{"engine":${engine}},"newValue":1,"oldValue":2}'
             else
               '{"cause":{"engine":${engine},"senses":[{"sId":"' || s_id || '","val":' || device_id ||
               ',"ts":1795219200000}]},"why":[{"sId":"' || s_id || '","orderId":1,"thresholds":' ||
               '{"isGt":30},"compared":31.5,"negate":false,"matched":1,"of":1,"needed":1}],"notified":true}'
           end::json
      from made
    returning device_id, ts, key, seq, body
  )
  insert into event_sense (device_id, s_id, ts, key, seq, body)
  select device_id, s_id, ts, key, seq, body
    from stored join made using (device_id, ts, key)
   where type = 'sense'`;

const measurementsOfDay = `
  insert into measurement (series_id, ts, val)
  select series.id,
         date_trunc('milliseconds', ms_to_timestamp($3::bigint) + n * interval '1 day' / $2::integer)
           + device_id * interval '1 ms',
         20 + (n % 100) / 10.0
    from generate_series(1, $2::integer) n
   cross join generate_series(1, $1::integer) device_id
    join series using (device_id)
   where s_id = '0x1' || n % ${senses.length}
   order by n, device_id`;

const minutesOfDay = `
  insert into measurement (series_id, ts, val)
  select id, ms_to_timestamp($2::bigint) + n * interval '1 minute', 20 + n % 10
    from series, generate_series(1, 1440) n
   where device_id = $1::bigint`;
