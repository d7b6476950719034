import { afterEach, beforeEach, expect, test } from 'vitest';
import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import type { Database } from '../../src/db/database.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { forever, ingestProcess, insertDevice, measured, now, rejections } from './harness.ts';
import { countingPurpose, installProfile, waitForBlocked, type IngestProcess } from './harness.ts';

let database: TestDatabase;
let db: Database;
let device: DeviceIdentity;
let process: IngestProcess;
beforeEach(async () => {
  database = await testDatabase();
  ({ db } = database);
  device = await insertDevice(db);
  process = ingestProcess(database.url);
});
afterEach(async () => {
  await process.close();
  await database.drop();
});

const tick = ({ ingest }: IngestProcess, of: DeviceIdentity): Promise<void> =>
  new Promise((stored, failed) => ingest.tick(of, { isWithdrawn: false, stored, failed }));

const fallDue = ({ deviceId, accountId }: DeviceIdentity, ts: number) =>
  db.query(
    `insert into device_due (device_id, account_id, due_at) values ($1, $2, ms_to_timestamp($3))`,
    [deviceId, accountId, ts],
  );

async function rowsOf({ deviceId }: DeviceIdentity) {
  const due = await db.query<{ due_at: number }>(
    'select due_at from device_due where device_id = $1',
    [deviceId],
  );
  const state = await db.query<{ version: number }>(
    'select version from device_state where device_id = $1',
    [deviceId],
  );
  return { due: due.rows[0]?.due_at ?? null, version: state.rows[0]?.version ?? 0 };
}

test('a tick that finds nothing removes its row, and raises the version of the device', async () => {
  const { version } = await rowsOf(device);
  await fallDue(device, now);
  await tick(process, device);
  const after = await rowsOf(device);
  expect(after.due).toBeNull();
  expect(after.version).toBeGreaterThan(version);
  expect(await rejections(db, device)).toEqual([]);
});

test('a device that is no longer due, or was removed, is left as it is', async () => {
  const { version } = await rowsOf(device);
  await expect(tick(process, device)).rejects.toMatchObject({ code: 'device-gone' });
  expect(await rowsOf(device)).toEqual({ due: null, version });
  await fallDue(device, now);
  await db.query('delete from device where id = $1', [device.deviceId]);
  expect(await rowsOf(device)).toEqual({ due: null, version: 0 });
  await expect(tick(process, device)).rejects.toMatchObject({ code: 'device-gone' });
});

test('one that another transaction holds is left to the next look, and delays nobody', async () => {
  await installProfile(db, device, [countingPurpose(2)]);
  await fallDue(device, now);
  const other = await insertDevice(db);
  await fallDue(other, now);
  const held = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const holding = db.transaction(async (tx) => {
    await tx.query('select from device_state where device_id = $1 for update', [device.deviceId]);
    held.resolve();
    await asked.promise;
  });
  await held.promise;
  const left = expect(tick(process, device)).rejects.toMatchObject({ code: 'device-gone' });
  await tick(process, other);
  await left;
  asked.resolve();
  await holding;
  expect((await rowsOf(device)).due).toBe(now);
  await tick(process, device);
  expect((await rowsOf(device)).due).toBeNull();
});

test('messages of the device wait for a tick that holds it, and follow it', async () => {
  await installProfile(db, device, [countingPurpose(2)]);
  await fallDue(device, now);
  const second = ingestProcess(database.url);
  try {
    await db.query('create table held (); ');
    await db.query(`
      create function hold() returns trigger language plpgsql as
      $$ begin perform from held; return old; end $$`);
    await db.query(
      'create trigger held before delete on device_due for each row execute function hold()',
    );
    const locked = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    const holding = db.transaction(async (tx) => {
      await tx.query('lock table held in access exclusive mode');
      locked.resolve();
      await goOn.promise;
    });
    await locked.promise;
    const ticked = tick(process, device);
    await waitForBlocked(db);
    const sent = second.ingest.ingest(device, measured('0x01', [now, 21]), forever);
    await waitForBlocked(db, 2);
    goOn.resolve();
    await Promise.all([holding, ticked, sent]);
    expect((await rowsOf(device)).due).toBeNull();
  } finally {
    await second.close();
  }
});

test('a tick makes what others remember of the device invalid', async () => {
  await installProfile(db, device, [countingPurpose(2)]);
  const second = ingestProcess(database.url);
  try {
    await second.ingest.ingest(device, measured('0x01', [now, 21]), forever);
    await fallDue(device, now);
    await tick(process, device);
    const before = second.transactions();
    await second.ingest.ingest(device, measured('0x01', [now + 1, 22]), forever);
    // The first attempt finds another version, and the second one reads the device again.
    expect(second.transactions() - before).toBe(2);
  } finally {
    await second.close();
  }
});

test('a tick that the database refuses fails alone, and is no rejection of its device', async () => {
  const other = await insertDevice(db);
  await fallDue(device, now);
  await fallDue(other, now);
  await db.query(`
    create function refuse() returns trigger language plpgsql as
    $$ begin raise exception 'never' using errcode = '22003'; end $$`);
  await db.query(`
    create trigger refused before delete on device_due
    for each row when (old.device_id = ${device.deviceId}) execute function refuse()`);
  const refused = expect(tick(process, device)).rejects.toMatchObject({ code: '22003' });
  await tick(process, other);
  await refused;
  expect((await rowsOf(device)).due).toBe(now);
  expect((await rowsOf(other)).due).toBeNull();
  expect(await rejections(db, device)).toEqual([]);
});
