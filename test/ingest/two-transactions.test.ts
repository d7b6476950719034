import { afterAll, beforeAll, expect, test } from 'vitest';
import { testDatabase } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';
import { forever, ingestProcess, insertDevice, measured, now, waitForBlocked } from './harness.ts';
import { rejections, storedValues } from './harness.ts';
import type { IngestProcess } from './harness.ts';

let database: TestDatabase;
let process: IngestProcess;
beforeAll(async () => {
  database = await testDatabase();
  process = ingestProcess(database.url);
});
afterAll(async () => {
  await process.close();
  await database.drop();
});

test('does not make devices wait for long behind a transaction that hangs', async () => {
  const [slow, quick] = [await insertDevice(database.db), await insertDevice(database.db)];
  const holder = await database.db.pool.connect();
  try {
    await process.ingest.ingest(slow, measured('0x01', [now - 1, 0]), forever);
    await holder.query('begin');
    await holder.query(
      `insert into measurement (series_id, ts, val)
       select id, ms_to_timestamp($2), 1 from series where device_id = $1`,
      [slow.deviceId, now],
    );
    const first = process.ingest.ingest(slow, measured('0x01', [now, 1], [now, 2]), forever);
    await waitForBlocked(database.db);
    await process.ingest.ingest(quick, measured('0x01', [now, 1]), forever);
    expect(await storedValues(database.db, quick)).toEqual([1]);
    await holder.query('commit');
    await first;
  } finally {
    holder.release();
  }
  // Only now does it find out that what it holds is stored already.
  expect(await storedValues(database.db, slow)).toEqual([0, 1, 2]);
});

test('recognises redeliveries in two transactions at once', async () => {
  const both = [await insertDevice(database.db), await insertDevice(database.db)];
  const message = measured('0x01', [now, 1]);
  const other = ingestProcess(database.url);
  for (const own of both) await process.ingest.ingest(own, message, forever);
  const holder = await database.db.pool.connect();
  try {
    await holder.query('begin; lock table measurement in access exclusive mode');
    const settled = [];
    for (const [i, own] of both.entries()) {
      settled.push(other.ingest.ingest(own, message, forever));
      await waitForBlocked(database.db, i + 1);
    }
    await holder.query('commit');
    await Promise.all(settled);
  } finally {
    holder.release();
  }
  for (const own of both) {
    expect(await storedValues(database.db, own)).toEqual([1]);
    expect(await rejections(database.db, own)).toEqual([]);
  }
  await other.close();
});
