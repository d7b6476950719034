import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../src/db/database.ts';
import { pruneHistory, readHistoryKind } from '../../src/history/retention.ts';
import { purgeAll } from '../history/purge-all.ts';
import { migrate } from '../../src/db/migrate.ts';
import { listEvents, recordEvents } from '../../src/events/store.ts';
import { listMeasuredSenses, walkBuckets } from '../../src/measurements/queries.ts';
import { storeMeasurements } from '../../src/measurements/store.ts';
import { newDevice, newEvent, senseEvent } from '../events/app.ts';
import { findTimescaleBinDir, startThrowAwayCluster, type Cluster } from '../support/cluster.ts';
import { openTestDatabase } from '../support/database.ts';

const day = 86_400_000;

/** TimescaleDB as some distributions and clouds offer it: without the features under its own licence. */
describe.skipIf(findTimescaleBinDir() === null)("TimescaleDB's Apache build", () => {
  let cluster: Cluster;
  let db: Database;
  const told: string[] = [];

  beforeAll(async () => {
    cluster = await startThrowAwayCluster({
      timescaledb: true,
      settings: ['timescaledb.license=apache'],
    });
    const url = cluster.url();
    const log = {
      info: (_: object, line: string) => told.push(line),
      warn: (_: object, line: string) => told.push(line),
    };
    const storage = await migrate(url, { log });
    expect(storage.kind).toBe('timescaledb-apache');
    db = openTestDatabase(url);
  });
  afterAll(async () => {
    await db?.close();
    await cluster?.remove();
  });

  test('keeps the history in ordinary tables, and expires it by deleting rows', async () => {
    expect(await readHistoryKind(db)).toBe('plain');
    const device = await newDevice(db);
    const { deviceId } = device;
    const now = Date.now();
    await db.transaction(async (tx) => {
      const at = [now, now - 400 * day];
      await storeMeasurements(
        tx,
        at.map((ts) => ({ deviceId, sId: '0x1', ts, val: 1 })),
      );
      await recordEvents(
        tx,
        at.map((ts) => newEvent(device, 'k', senseEvent(ts, '0x1'))),
      );
    });
    const retention = { eventsDays: 365, measurementsDays: 90 };
    expect(await pruneHistory(db, { retention, nowTs: now })).toBe(3);
    expect(await listEvents(db, { deviceId, start: 0, senses: ['0x1'] }, now)).toHaveLength(1);
    const range = { senses: await listMeasuredSenses(db, deviceId), start: 0, end: now };
    const counts: number[] = [];
    for await (const page of walkBuckets(db, 'plain', range, {
      width: { count: 1, unit: 'd' },
      tz: 'UTC',
      nowTs: now,
    })) {
      counts.push(...page.map(({ count }) => count));
    }
    expect(counts).toEqual([1]);
    await purgeAll(db, { accountId: device.accountId, deviceIds: [deviceId] });
    expect(await listEvents(db, { deviceId, start: 0 }, now)).toEqual([]);
  });
});
