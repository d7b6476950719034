import { afterAll, beforeAll, expect, test } from 'vitest';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { forever, ingestProcess, insertDevice, measured, now } from './harness.ts';
import { rejections, storedValues, type IngestProcess } from './harness.ts';

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

test.each([
  [
    'of another version',
    'alter table measurement rename val to value',
    'alter table measurement rename value to val',
  ],
  [
    'that is gone',
    'alter table measurement rename to elsewhere',
    'alter table elsewhere rename to measurement',
  ],
])('a table %s makes messages wait: they are not to blame', async (_name, change, back) => {
  const device = await insertDevice(database.db);
  await database.db.query(change);
  const before = process.transactions();
  const stored = process.ingest.ingest(device, measured('0x01', [now, 1], [now + 1, 2]), forever);
  // A faulty message is split and rejected in the second attempt.
  await expect.poll(process.transactions).toBeGreaterThan(before + 2);
  await database.db.query(back);
  await stored;
  expect(await storedValues(database.db, device)).toEqual([1, 2]);
  expect(await rejections(database.db, device)).toEqual([]);
});
