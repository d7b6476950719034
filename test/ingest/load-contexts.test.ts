import { expect, test } from 'vitest';
import type { Sql } from '../../src/db/sql.ts';
import type { Lane } from '../../src/ingest/lane.ts';
import { createContextLoader } from '../../src/ingest/load-contexts.ts';
import { findNewest } from '../../src/measurements/newest.ts';
import { testDatabase } from '../harness/database.ts';
import { configuration, countingPurpose } from './harness.ts';

test('a device has its profile also where more are loaded meanwhile than are remembered', async () => {
  const database = await testDatabase();
  const { db } = database;
  const { rows: made } = await db.query<{ deviceId: number }>(
    `with owner as (
       insert into account (email, password_hash) values ('owner@example.org', '') returning id
     ), devices as (
       insert into device (account_id, connector_id, configuration)
       select owner.id, 1, $1 from owner, generate_series(1, 1100) returning id
     ), states as (
       insert into device_state (device_id) select id from devices
     ), content as (
       insert into profile_content (account_id, hash, bytes, purposes)
       select owner.id, '', 0, $2 from owner returning id
     ), profiles as (
       insert into profile (account_id, content_id)
       select owner.id, content.id from owner, content, generate_series(1, 1100) returning id
     )
     insert into device_profile (device_id, profile_id)
     select d.id, p.id
       from (select id, row_number() over () as n from devices) d
       join (select id, row_number() over () as n from profiles) p using (n)
     returning device_id as "deviceId"`,
    [JSON.stringify(configuration), JSON.stringify([countingPurpose(1)])],
  );
  const [first, second, ...others] = made.map((device) => ({ device }) as Lane) as [Lane, Lane];
  const load = createContextLoader(findNewest);
  await load(db, [first]);

  const { promise: asked, resolve: tellAsked } = Promise.withResolvers<void>();
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  const slow = {
    query: async (query: { name?: string }) => {
      if (query.name === 'ingest-profiles') {
        tellAsked();
        await released;
      }
      return db.query(query as never);
    },
  } as Sql;
  const loaded = load(slow, [first, second]);
  await asked;
  await load(db, others);
  release();
  const { contexts } = await loaded;
  for (const { device } of [first, second]) {
    expect(contexts.get(device.deviceId)?.pending?.senses).toEqual(new Map([['0x01', 0]]));
  }
  await database.drop();
});
