import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import defaults from '../../config/default.ts';
import {
  compactActivity,
  findActivity,
  listStoredBytes,
  startActivity,
} from '../../src/quotas/activity.ts';
import type { Sql } from '../../src/db/sql.ts';
import { insertAccount } from '../support/accounts.ts';
import { databaseKinds, testDatabase, type TestDatabase } from '../support/database.ts';

const retention = { eventsDays: 365, measurementsDays: 90 };
const dayMs = 86_400_000;

describe.each(databaseKinds)('the activity of accounts, on %s', (kind) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await testDatabase(kind);
  });
  afterAll(() => database.drop());

  const account = () => insertAccount(database.db);
  /** A process that writes only when the test says so. */
  const start = (clock = Date.now, db: Sql = database.db, errors: unknown[] = []) =>
    startActivity({
      db,
      limitsOf: () => ({ ...defaults.quotas, eventsPerDay: 100 }),
      clock,
      runUuid: randomUUID(),
      intervalMs: 1_000_000,
      onError: (error) => errors.push(error),
    });
  const events = (count: number) => ({ measurements: 0, events: count, leftOut: 0, inputBytes: 0 });

  it('is counted by each process, and known to the others once it is written', async () => {
    const [one, other] = [await start(), await start()];
    const [id, stranger] = [await account(), await account()];
    one.count(id, { measurements: 1_000, events: 30, leftOut: 0, inputBytes: 0 });
    one.count(id, { measurements: 1_000, events: 0, leftOut: 7, inputBytes: 0 });
    other.count(id, events(20));
    expect([one.eventsLeft(id), other.eventsLeft(id), one.eventsLeft(stranger)]).toEqual([
      70, 80, 100,
    ]);
    await one.flush();
    await other.flush();
    expect([one.eventsLeft(id), other.eventsLeft(id)]).toEqual([70, 50]);
    one.count(id, events(10));
    expect(one.eventsLeft(id)).toBe(60);
    await one.close();
    expect(await findActivity(database.db, id, retention)).toEqual({
      eventsPerDay: 67,
      storedBytes: 2_000 * 100 + 60 * 1_400,
    });
    // A new process knows the earlier counts.
    const next = await start();
    expect(next.eventsLeft(id)).toBe(40);
    await Promise.all([other.close(), next.close()]);
  });

  it('is kept while it cannot be written, and dropped if the account is gone', async () => {
    let isAway = true;
    const failing = {
      query: (...args: [string]) =>
        isAway && args[0].includes('insert')
          ? Promise.reject(new Error('away'))
          : database.db.query(...args),
    } as Sql;
    const errors: unknown[] = [];
    const [id, gone] = [await account(), await account()];
    const own = await start(Date.now, failing, errors);
    own.count(id, events(5));
    own.count(gone, events(5));
    await own.flush();
    expect(errors).toHaveLength(1);
    expect(own.eventsLeft(id)).toBe(95);
    await database.db.query('delete from account where id = $1', [gone]);
    isAway = false;
    own.count(id, events(5));
    await own.close();
    expect(errors).toHaveLength(1);
    expect(await findActivity(database.db, id, retention)).toMatchObject({ eventsPerDay: 10 });
  });

  it('still counts for storedBytes when the device that caused it is removed', async () => {
    const id = await account();
    const own = await start();
    own.count(id, { measurements: 1_000, events: 10, leftOut: 0, inputBytes: 0 });
    await own.close();
    const before = await findActivity(database.db, id, retention);
    await database.db.query(
      `with device as (
         insert into device (account_id, connector_id, configuration) values ($1, 1, '{}') returning id
       )
       insert into device_state (device_id) select id from device`,
      [id],
    );
    const { rowCount } = await database.db.query('delete from device where account_id = $1', [id]);
    expect(rowCount).toBe(1);
    expect(before.storedBytes).toBe(1_000 * 100 + 10 * 1_400);
    expect(await findActivity(database.db, id, retention)).toEqual(before);
    expect((await listStoredBytes(database.db, retention)).get(id)).toBe(before.storedBytes);
  });

  it('counts for storedBytes what is kept of devices besides, and of what was before', async () => {
    const id = await account();
    const [own, clock] = [await start(), () => Date.now() - 3 * dayMs];
    own.count(id, { ...events(0), inputBytes: 1_000 });
    await own.close();
    const earlier = await start(clock);
    earlier.count(id, { ...events(0), inputBytes: 500 });
    await earlier.close();
    await compactActivity(database.db, { eventsDays: 5, measurementsDays: 5 }, Date.now());
    const { rows } = await database.db.query<{ id: number }>(
      `insert into device (account_id, connector_id, configuration) values ($1, 1, '{}') returning id`,
      [id],
    );
    const deviceId = rows[0]?.id;
    await database.db.query(
      `with own as (
         insert into purpose (account_id, name, bytes, body) values ($1, '', 2, '{}') returning id
       ), former as (
         insert into former_version (purpose_id, version, made_at, ended_at, name, bytes, body)
         select id, 1, now(), now(), '', 40, '{}' from own
       ), configured as (
         insert into former_version (device_id, version, made_at, ended_at, name, bytes, body)
         values ($2, 1, now(), now(), '', 50, '{}'), ($2, 2, now(), now(), '', 60, '{}')
       ), profile_row as (
         insert into profile (account_id) values ($1) returning id
       ), span as (
         insert into device_profile_span (device_id, profile_id, from_at) select $2, id, now() from profile_row
       )
       insert into former_profile_content (id, account_id, bytes, purposes, ended_at)
       values (1000000 + $1, $1, 70, '[]', now())`,
      [id, deviceId],
    );
    const bytes = 1_500 + 40 + 50 + 60 + 3 * 200 + 150 + 70;
    const kept = { eventsDays: 5, measurementsDays: 5 };
    expect((await findActivity(database.db, id, kept)).storedBytes).toBe(bytes);
    expect((await listStoredBytes(database.db, kept)).get(id)).toBe(bytes);
    // As long as events.
    const short = { eventsDays: 1, measurementsDays: 5 };
    expect((await findActivity(database.db, id, short)).storedBytes).toBe(bytes - 500);
  });

  it('starts anew every day; one row is left of each', async () => {
    const id = await account();
    let nowTs = Date.now() - 3 * dayMs;
    const clock = () => nowTs;
    const [one, other] = [await start(clock), await start(clock)];
    for (let day = 3; day >= 0; day -= 1) {
      for (const own of [one, other]) {
        expect(own.eventsLeft(id)).toBe(100);
        own.count(id, { measurements: 0, events: 60, leftOut: 5, inputBytes: 0 });
      }
      await Promise.all([one.flush(), other.flush()]);
      nowTs += dayMs;
    }
    await Promise.all([one.close(), other.close()]);
    await compactActivity(database.db, retention, Date.now());
    const { rows } = await database.db.query(
      `select (now() at time zone 'UTC')::date - day as age, count(*), sum(events)::integer as events
         from account_activity where account_id = $1 group by 1 order by 1`,
      [id],
    );
    expect(rows).toEqual([
      { age: 0, count: 2, events: 120 },
      { age: 1, count: 2, events: 120 },
      { age: 2, count: 1, events: 120 },
      { age: 3, count: 1, events: 120 },
    ]);
    expect(await findActivity(database.db, id, { eventsDays: 2, measurementsDays: 2 })).toEqual({
      eventsPerDay: 130,
      storedBytes: 360 * 1_400,
    });
    await compactActivity(database.db, { eventsDays: Infinity, measurementsDays: 1 }, Date.now());
    await compactActivity(database.db, { eventsDays: 2, measurementsDays: 1 }, Date.now());
    const left = await database.db.query('select from account_activity where account_id = $1', [
      id,
    ]);
    expect(left.rowCount).toBe(5);
  });
});
