import { afterAll, beforeAll, expect, test } from 'vitest';
import type { Sql } from '../../src/db/sql.ts';
import { ContextCache, createContextLoader } from '../../src/ingest/device-state.ts';
import { type DeviceQueue, DeviceQueues } from '../../src/ingest/queue.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { configuration, countingPurpose } from './harness.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());

/** Devices of a new account with a profile each. These have this many different contents, of this many bytes. */
async function insertDevices(
  devices: number,
  contents: number,
  bytes = 100,
): Promise<DeviceQueue[]> {
  const { rows } = await database.db.query<{ deviceId: number; accountId: number }>(
    `with owner as (
       insert into account (email, password_hash) values (gen_random_uuid() || '@example.org', '')
       returning id
     ), devices as (
       insert into device (account_id, connector_id, configuration)
       select owner.id, 1, $1 from owner, generate_series(1, $3) returning id, account_id
     ), states as (
       insert into device_state (device_id) select id from devices
     ), contents as (
       insert into profile_content (account_id, hash, bytes, purposes)
       select owner.id, n::text::bytea, $5, $2 from owner, generate_series(0, $4 - 1) n returning id
     ), profiles as (
       insert into profile (account_id, content_id)
       select owner.id, c.id
         from owner, generate_series(0, $3 - 1) g
         join (select id, row_number() over () - 1 as n from contents) c on c.n = g % $4
       returning id
     )
     insert into device_profile (device_id, profile_id)
     select d.id, p.id
       from (select id, row_number() over () as n from devices) d
       join (select id, row_number() over () as n from profiles) p using (n)
     returning device_id as "deviceId", (select id from owner) as "accountId"`,
    [JSON.stringify(configuration), JSON.stringify([countingPurpose(1)]), devices, contents, bytes],
  );
  return rows.map((device) => new DeviceQueues(1).queueOf({ ...device, uuid: '' }));
}

test('a device has its profile even if that is forgotten while others are read', async () => {
  const { db } = database;
  const [first, second] = (await insertDevices(2, 2)) as [DeviceQueue, DeviceQueue];
  const remembered = new ContextCache(1_000_000, Date.now);
  const load = createContextLoader(remembered);
  await load(db, [first]);

  const { promise: asked, resolve: tellAsked } = Promise.withResolvers<void>();
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const slow = {
    query: async (query: { name?: string }) => {
      if (query.name === 'ingest-contents') {
        tellAsked();
        await released;
      }
      return db.query(query as never);
    },
  } as Sql;
  const loaded = load(slow, [first, second]);
  await asked;
  remembered.shrink();
  expect(remembered.bytes).toBe(0);
  release();
  const { deviceStates } = await loaded;
  for (const { device } of [first, second]) {
    expect(deviceStates.get(device.deviceId)?.pending?.senses).toEqual(new Map([['0x01', 0]]));
  }
});

test('profiles with the same content are compiled and remembered once', async () => {
  const queues = await insertDevices(100, 1);
  const remembered = new ContextCache(100_000_000, Date.now);
  const { deviceStates } = await createContextLoader(remembered)(database.db, queues);
  const pending = [...deviceStates.values()].map((deviceState) => deviceState.pending);
  expect(new Set(pending.map((profile) => profile?.pId)).size).toBe(100);
  expect(new Set(pending.map((profile) => profile?.purposes)).size).toBe(1);
  expect(remembered.bytes).toBe(2_000 + 13 * 100);
});

test('a transaction reads no more than it has room for, but at least one device', async () => {
  const queues = await insertDevices(10, 10, 524_288);
  const remembered = new ContextCache(64 * 2 * 525_000, Date.now);
  const load = createContextLoader(remembered);
  const { deviceStates, left } = await load(database.db, queues);
  expect([...deviceStates.keys()]).toEqual(queues.slice(0, 2).map(({ device }) => device.deviceId));
  expect([...left]).toEqual(queues.slice(2));

  const tight = createContextLoader(new ContextCache(1, Date.now));
  const one = await tight(database.db, queues);
  expect(one.deviceStates.size).toBe(1);
  expect(one.left.size).toBe(9);
});

test('compiled contents take no room to read', async () => {
  const queues = await insertDevices(10, 1, 524_288);
  const remembered = new ContextCache(64 * 600_000, Date.now);
  const { left } = await createContextLoader(remembered)(database.db, queues);
  expect(left.size).toBe(0);
});
