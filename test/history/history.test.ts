import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../src/db/database.ts';
import { pruneHistory } from '../../src/history/retention.ts';
import { purgeAll } from './purge-all.ts';
import { recordEvents } from '../../src/events/store.ts';
import { addMeasurements, storeMeasurements } from '../../src/measurements/store.ts';
import { newDevice, newEvent, senseEvent, type Device } from '../events/app.ts';
import { databaseKinds, testDatabase, type TestDatabase } from '../support/database.ts';
import { openClient } from '../support/template.ts';

const day = 86_400_000;
const now = Date.now();
const tables = ['measurement', 'event', 'event_sense'] as const;

describe.each(databaseKinds)('the history on %s', (kind) => {
  let database: TestDatabase;
  let db: Database;

  beforeAll(async () => {
    database = await testDatabase(kind);
    db = database.db;
  });
  afterAll(() => database?.drop());

  /** One measurement and one event for each day of age. */
  async function fill(device: Device, ages: number[]): Promise<void> {
    await db.transaction(async (tx) => {
      const at = ages.map((age) => now - age * day);
      await storeMeasurements(
        tx,
        at.map((ts) => ({ deviceId: device.deviceId, sId: '0x1', ts, val: 1 })),
      );
      const events = at.map((ts) => newEvent(device, 'k', senseEvent(ts, '0x1', '0x2')));
      await recordEvents(tx, events);
    });
  }

  async function agesIn(table: string, { deviceId }: Device): Promise<number[]> {
    const isOwn =
      table === 'measurement'
        ? 'series_id in (select id from series where device_id = $1)'
        : 'device_id = $1';
    const { rows } = await db.query<{ ts: number }>(
      `select distinct ts from ${table} where ${isOwn} order by ts desc`,
      [deviceId],
    );
    return [...new Set(rows.map(({ ts }) => Math.round((now - ts) / day)))];
  }

  async function compressAll(): Promise<number> {
    const { rows } = await db.query<{ n: number }>(
      `select count(compress_chunk(chunk, true)) as n
         from unnest(array['measurement', 'event', 'event_sense']) t,
              lateral show_chunks(t::regclass) chunk`,
    );
    return rows[0]?.n ?? 0;
  }

  test('is deleted when its time is over, and the rest stays', async () => {
    const devices = [await newDevice(db), await newDevice(db), await newDevice(db)];
    const ages = [0, 1, 20, 50, 70, 110, 200, 400];
    for (const device of devices) await fill(device, ages);
    if (kind === 'timescaledb')
      await db.query(`call refresh_continuous_aggregate('measurement_hour', null, null)`);
    // Everything, even what the longest finite retention would delete.
    const all = { eventsDays: Infinity, measurementsDays: Infinity };
    expect(await pruneHistory(db, { retention: all, nowTs: now })).toBe(0);
    for (const device of devices) expect(await agesIn('measurement', device)).toEqual(ages);
    const retention = { eventsDays: 100, measurementsDays: 60 };
    const deleted = await pruneHistory(db, { retention, nowTs: now, batchRows: 4 });
    if (kind === 'postgresql') expect(deleted).toBeGreaterThan(0);
    expect(await pruneHistory(db, { retention, nowTs: now })).toBe(0);
    if (kind === 'timescaledb') {
      const { rows } = await db.query<{ oldest: number }>(
        `select min(bucket) as oldest from measurement_hour`,
      );
      expect(Math.round((now - (rows[0]?.oldest ?? 0)) / day)).toBe(50);
    }
    for (const device of devices) {
      expect(await agesIn('measurement', device)).toEqual([0, 1, 20, 50]);
      expect(await agesIn('event', device)).toEqual([0, 1, 20, 50, 70]);
      expect(await agesIn('event_sense', device)).toEqual([0, 1, 20, 50, 70]);
    }
  });

  test('forgets what streams resume from after a day, and not before', async () => {
    const device = await newDevice(db);
    await fill(device, [0, 1, 2]);
    await db.query(
      `update event_feed set recorded_at = now() - interval '25 hours'
        where device_id = $1 and ts < now() - interval '36 hours'`,
      [device.deviceId],
    );
    const retention = { eventsDays: 365, measurementsDays: 90 };
    await pruneHistory(db, { retention, nowTs: Date.now(), batchRows: 1 });
    expect(await agesIn('event_feed', device)).toEqual([0, 1]);
  });

  test('is purged of a device, even if it is compressed, while other devices continue', async () => {
    const gone = await newDevice(db);
    const stays = await newDevice(db);
    const ages = Array.from({ length: 30 }, (_, i) => i * 2);
    await fill(gone, ages);
    await fill(stays, ages);
    if (kind === 'timescaledb') {
      expect(await compressAll()).toBeGreaterThan(0);
      await db.query(`call refresh_continuous_aggregate('measurement_hour', null, null)`);
      // Late rows lie beside the compressed ones.
      await fill(gone, [3, 41]);
    }
    // A transaction of another device is open on the same chunks all the time.
    const other = openClient(database.url);
    await other.connect();
    await other.query('begin');
    const late = { deviceId: stays.deviceId, sId: '0x1', ts: now - 40 * day - 5, val: 2 };
    await storeMeasurements(other, [late]);
    await purgeAll(db, { accountId: gone.accountId, deviceIds: [gone.deviceId, 999_999] });
    await other.query('commit');
    await other.end();

    for (const table of [...tables, 'event_feed']) {
      expect([table, await agesIn(table, gone)]).toEqual([table, []]);
    }
    for (const table of tables) expect(await agesIn(table, stays)).toEqual(ages);
    const series = await db.query('select from series where device_id = $1', [gone.deviceId]);
    expect(series.rowCount).toBe(0);
    const orphans = await db.query(
      'select from measurement where series_id not in (select id from series)',
    );
    expect(orphans.rowCount).toBe(0);
    if (kind === 'timescaledb') {
      const ownersOfHours = async () => {
        const { rows } = await db.query(
          `select distinct s.device_id
             from measurement_hour h
             left join series s on s.id = h.series_id`,
        );
        return rows;
      };
      expect(await ownersOfHours()).toContainEqual({ device_id: stays.deviceId });
      expect(await ownersOfHours()).not.toContainEqual({ device_id: null });
      await db.query(`call refresh_continuous_aggregate('measurement_hour', null, null)`);
      expect(await ownersOfHours()).not.toContainEqual({ device_id: null });
    }
  });

  test.runIf(kind === 'timescaledb')(
    'accepts late rows in compressed chunks, and recognises those it has',
    async () => {
      const device = await newDevice(db);
      const { deviceId } = device;
      // More than TimescaleDB decompresses in a transaction by default.
      await fill(device, [30]);
      await db.query(
        `insert into measurement (series_id, ts, val)
         select id, ms_to_timestamp($2) + i * interval '100 ms', 1
           from series, generate_series(1, 119999) i
          where device_id = $1`,
        [deviceId, now - 30 * day],
      );
      await compressAll();
      const rows = Array.from({ length: 120 }, (_, i) => ({
        deviceId,
        sId: '0x1',
        ts: now - 30 * day + i * 100_000,
        val: 1,
      }));
      await db.transaction((tx) =>
        storeMeasurements(tx, [
          ...rows,
          { deviceId, sId: '0x1', ts: now - 30 * day, val: 2 },
          { deviceId, sId: '0x1', ts: now - 30 * day + 50, val: 1 },
        ]),
      );
      const count = `
        select count(*) as n from measurement m join series s on s.id = m.series_id
         where s.device_id = $1`;
      expect((await db.query<{ n: number }>(count, [deviceId])).rows[0]?.n).toBe(120_002);
      const copy = (...fresh: { ts: number; val: number }[]) =>
        db.transaction((tx) =>
          addMeasurements(
            tx,
            fresh.map((each) => ({ deviceId, sId: '0x1', ...each })),
          ),
        );
      await copy({ ts: now - 30 * day + 51, val: 1 }, { ts: now - 30 * day + 52, val: 1 });
      await expect(
        copy({ ts: now - 30 * day + 53, val: 4 }, { ts: now - 30 * day + 300_000, val: 1 }),
      ).rejects.toMatchObject({ code: '23505' });
      expect((await db.query<{ n: number }>(count, [deviceId])).rows[0]?.n).toBe(120_004);
      const again = newEvent(device, 'k', senseEvent(now - 30 * day, '0x1', '0x2'));
      const fresh = newEvent(device, 'l', senseEvent(now - 30 * day, '0x1', '0x2'));
      expect(await db.transaction((tx) => recordEvents(tx, [again, fresh]))).toEqual([fresh]);
      const { rows: decompressed } = await db.query<{ setting: string }>(
        `select current_setting('timescaledb.max_tuples_decompressed_per_dml_transaction') as setting`,
      );
      expect(decompressed[0]?.setting).toBe('0');
    },
  );
});
