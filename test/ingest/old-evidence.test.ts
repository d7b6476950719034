import { expect, test } from 'vitest';
import { testDatabase } from '../support/database.ts';
import { countingPurpose, forever, ingestProcess, insertDevice } from './harness.ts';
import { installProfile, measured, now, recordedEvents } from './harness.ts';

test('evidence that version 0.1 stored is continued, and written in today’s form', async () => {
  const database = await testDatabase();
  const { db } = database;
  const device = await insertDevice(db);
  await installProfile(db, device, [countingPurpose(3)]);
  const before = ingestProcess(database.url);
  await before.ingest.ingest(device, measured('0x01', [now, 1]), forever);
  await before.close();
  const agreed = { val: 25, ts: now - 1, compared: 25 };
  const event = { causes: [{ window: '11', agreed }] };
  const old = { v: 1, puId: 7, stId: 1, local: { '1/3': event }, global: {} };
  await db.query('update device_state set runtime = $2 where device_id = $1', [
    device.deviceId,
    JSON.stringify(old),
  ]);

  const process = ingestProcess(database.url);
  await process.ingest.ingest(device, measured('0x01', [now + 1, 26]), forever);
  await process.ingest.ingest(device, measured('0x01', [now + 2, 27]), forever);
  const fired = (await recordedEvents(db, device)).filter(({ type }) => type === 'sense');
  expect(fired).toMatchObject([{ ts: now + 1, body: { why: [{ matched: 3, of: 3 }] } }]);
  const { rows } = await db.query<{ runtime: unknown }>(
    'select runtime from device_state where device_id = $1',
    [device.deviceId],
  );
  expect(rows[0]?.runtime).toMatchObject({ v: 2, events: [[0, [1, 1, 0]]] });
  await process.close();
  await database.drop();
});
