import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Configuration } from '../../src/contract/configuration.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import * as harness from './harness.ts';
import { countingPurpose, forever, ingestProcess, uplink } from './harness.ts';

let database: TestDatabase;
let own: harness.IngestProcess;
beforeAll(async () => {
  database = await testDatabase();
  const sizes = { nameLength: 5, textLength: 8, sensesPerDevice: 2 };
  own = ingestProcess(database.url, { limits: { sizesOf: () => sizes } });
});
afterAll(async () => {
  await own?.close();
  await database?.drop();
});

it('a configuration that is too large is a rejection, and the one before stays', async () => {
  const device = await harness.insertDevice(database.db);
  const describeAs = (configuration: Configuration) =>
    own.ingest.ingest(device, uplink({ kind: 'configuration', configuration }), forever);
  const stored = async () => {
    const { rows } = await database.db.query<{ configuration: Configuration }>(
      'select configuration from device where id = $1',
      [device.deviceId],
    );
    return rows[0]?.configuration;
  };
  await describeAs({ device: { name: 'probes' }, module: [] });
  expect(await stored()).toEqual(harness.configuration);
  expect(await harness.rejections(database.db, device)).toMatchObject([
    { reason: 'invalid-payload', path: '/device/name' },
  ]);
  const right: Configuration = { device: { name: 'other' }, module: [] };
  await describeAs(right);
  expect(await stored()).toEqual(right);
});

it('a device’s answer counts, and its text is cut', async () => {
  const device = await harness.insertDevice(database.db);
  const pId = await harness.installProfile(database.db, device, [countingPurpose(1)]);
  const answer = { pId, state: 'rejected' as const, text: 'no room for it' };
  await own.ingest.ingest(device, uplink({ kind: 'profile-answer', answer }), forever);
  const { rows } = await database.db.query(
    'select state, answer_text from device_profile where device_id = $1',
    [device.deviceId],
  );
  expect(rows).toEqual([{ state: 'rejected', answer_text: 'no room ' }]);
});
