import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import defaults from '../../config/default.ts';
import { saveOverride } from '../../src/quotas/queries.ts';
import { countUsedUp, watchUsedUp } from '../../src/quotas/used-up.ts';
import { databaseKinds, testDatabase, type TestDatabase } from '../support/database.ts';

const quotas = { ...defaults.quotas, devices: 2, keys: 1, eventsPerDay: 10, purposes: 5 };

describe.each(databaseKinds)('quotas that are used up, on %s', (kind) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await testDatabase(kind);
  });
  afterAll(() => database.drop());

  async function account(devices: number): Promise<number> {
    const { rows } = await database.db.query<{ id: number }>(
      `insert into account (email, email_normal, password_hash)
       select address, address, 'none' from (select gen_random_uuid() || '@example.org') as a (address)
       returning id`,
    );
    const id = rows[0]?.id ?? 0;
    await database.db.query('insert into account_usage (account_id, devices) values ($1, $2)', [
      id,
      devices,
    ]);
    return id;
  }

  it('are counted by kind, by the limit of each account, and not said of anybody', async () => {
    expect(await countUsedUp(database.db, quotas)).toEqual(new Map());
    await account(1);
    await account(2);
    const larger = await account(2);
    await saveOverride(database.db, larger, 'devices', 3);
    expect(await countUsedUp(database.db, quotas)).toEqual(new Map([['devices', 1]]));
    expect(await countUsedUp(database.db, quotas, 0.5)).toEqual(new Map([['devices', 3]]));

    await database.db.query(
      `insert into account_activity (account_id, process, day, measurements, events, events_left_out)
       select $1, gen_random_uuid(), (now() at time zone 'UTC')::date - day, 0, 4, 2
         from unnest(array[0, 0, 1, 1, 1]) as day`,
      [larger],
    );
    await database.db.query(
      `insert into message_count (kind, account_id, key, day, used)
       values ('sms', $1, '', (now() at time zone 'UTC')::date, 1000)`,
      [larger],
    );
    expect(Object.fromEntries(await countUsedUp(database.db, quotas))).toEqual({
      devices: 1,
      eventsPerDay: 1,
      smsPerDay: 1,
    });
  });
});

it('are said when they become more', async () => {
  const counts = [{ devices: 1 }, { devices: 1 }, { devices: 3, keys: 1 }, {}, { keys: 1 }];
  const onMore = vi.fn<(quota: string, accounts: number) => void>();
  const watch = watchUsedUp({
    count: async () => new Map(Object.entries(counts.shift() ?? { keys: 1 })) as never,
    intervalMs: 1,
    onMore,
    onError: vi.fn<(error: unknown) => void>(),
  });
  await expect.poll(() => counts.length).toBe(0);
  await watch.close();
  expect(onMore.mock.calls).toEqual([
    ['devices', 1],
    ['devices', 3],
    ['keys', 1],
    ['keys', 1],
  ]);
  expect(watch.counts()).toEqual(new Map([['keys', 1]]));
});
