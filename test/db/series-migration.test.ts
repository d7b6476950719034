import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { readHistoryKind } from '../../src/history/retention.ts';
import { migrate } from '../../src/db/migrate.ts';
import { storeMeasurements } from '../../src/measurements/store.ts';
import { databaseKinds, emptyDatabase, type TestDatabase } from '../support/database.ts';
import { openClient, runOn } from '../support/template.ts';
import { migrateTo, silent } from './earlier.ts';

const dayMs = 86_400_000;
const firstTs = Date.UTC(2026, 4, 3, 9);

type Row = { deviceId: number; sId: string; ts: number; val: number; long: number };

/** Forty days of two devices; every second millisecond is shared by three values, one a position. */
const measured: Row[] = [];
for (let n = 0; n < 240; n += 1) {
  const row = { deviceId: 1 + (n % 2), sId: n % 3 ? '0xA' : '0xa', ts: firstTs + (n * dayMs) / 6 };
  measured.push({ ...row, val: n, long: NaN });
  if (n % 2) measured.push({ ...row, val: -n, long: NaN }, { ...row, val: n, long: 13.5 });
}

const inOrder = (rows: Row[]) => rows.map((row) => Object.values(row).join(' ')).toSorted();

async function makeEarlierDatabase(url: string): Promise<void> {
  await migrateTo(url, 5);
  await runOn(url, async (client) => {
    const values = JSON.stringify(measured.map((row) => ({ ...row, long: String(row.long) })));
    await client.query(
      `insert into measurement (device_id, s_id, ts, val, long)
       select "deviceId", "sId", ms_to_timestamp(ts), val, long
         from json_to_recordset($1)
           as m ("deviceId" bigint, "sId" text, ts bigint, val float8, long float8)`,
      [values],
    );
    await client.query(
      'insert into measured_sense (device_id, s_id) select distinct device_id, s_id from measurement',
    );
  });
}

describe.each(databaseKinds)('measurements of an earlier version on %s', (kind) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await emptyDatabase(kind);
    await makeEarlierDatabase(database.url);
    if (kind === 'timescaledb') {
      await database.db.query(
        `select compress_chunk(c) from show_chunks('measurement') c limit 20`,
      );
      await database.db.query(`call refresh_continuous_aggregate('measurement_hour', null, null)`);
    }
    await migrate(database.url, { log: silent });
  });
  afterAll(() => database.drop());

  const readAll = async () => {
    const { rows } = await database.db.query<Row>(
      `select s.device_id as "deviceId", s.s_id as "sId", m.ts, m.val, m.long
         from measurement m join series s on s.id = m.series_id`,
    );
    return rows;
  };

  it('are all kept', async () => {
    expect(await readHistoryKind(database.db)).toBe(kind === 'timescaledb' ? kind : 'plain');
    expect(inOrder(await readAll())).toEqual(inOrder(measured));
  });

  it('are known when they come again', async () => {
    await database.db.transaction((tx) => storeMeasurements(tx, measured));
    expect(await readAll()).toHaveLength(measured.length);
  });

  it.runIf(kind === 'timescaledb')('are aggregated and compressed as before', async () => {
    const client = openClient(database.url);
    await client.connect();
    await client.query(`call refresh_continuous_aggregate('measurement_hour', null, null)`);
    const hours = await client.query(
      `select sum(count)::integer as count, max(max) as max from measurement_hour`,
    );
    expect(hours.rows).toEqual([
      { count: measured.filter(({ long }) => Number.isNaN(long)).length, max: 239 },
    ]);
    const { rows: jobs } = await client.query<{ job_id: number; proc_name: string }>(
      `select job_id, proc_name from timescaledb_information.jobs
        where hypertable_name = 'measurement' or proc_name like '%continuous_aggregate'
        order by proc_name`,
    );
    expect(jobs.map((job) => job.proc_name)).toEqual([
      'policy_compression',
      'policy_refresh_continuous_aggregate',
    ]);
    for (const { job_id } of jobs) await client.query(`call run_job(${job_id})`);
    const { rows: chunks } = await client.query(
      `select bool_and(is_compressed) as compressed from timescaledb_information.chunks
        where hypertable_name = 'measurement'`,
    );
    expect(chunks).toEqual([{ compressed: true }]);
    await client.end();
    expect(inOrder(await readAll())).toEqual(inOrder(measured));
  });
});
