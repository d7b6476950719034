import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Sql } from '../../src/db/sql.ts';
import { listConfigurations } from '../../src/devices/device.ts';
import { listDeviceStates } from '../../src/ingest/write.ts';
import { listDueDownlinks } from '../../src/profiles/downlinks.ts';
import { loadSessions } from '../../src/sessions/database.ts';
import {
  databaseKinds,
  openTestDatabase,
  testDatabase,
  type TestDatabase,
} from '../support/database.ts';

describe.each(databaseKinds)('look-ups of a few rows by their keys on %s', (kind) => {
  let database: TestDatabase;

  beforeAll(async () => {
    database = await testDatabase(kind);
  });
  afterAll(() => database.drop());

  test.each([
    ['devices-configurations', (sql: Sql) => listConfigurations(sql, [crypto.randomUUID()])],
    ['profiles-due', (sql: Sql) => listDueDownlinks(sql, [1])],
    ['load-sessions', (sql: Sql) => loadSessions(sql, [crypto.randomUUID()])],
  ])('%s is not planned each time', async (name, look) => {
    const times = 12;
    const plans = await database.db.transaction(async (tx) => {
      for (let i = 0; i < times; i += 1) await look(tx);
      return tx.query<{ custom_plans: number; generic_plans: number }>(
        'select custom_plans, generic_plans from pg_prepared_statements where name = $1',
        [name],
      );
    });
    // PostgreSQL always plans the first five for their values.
    expect(plans.rows).toEqual([{ custom_plans: 5, generic_plans: times - 5 }]);
  });

  test('a connection that keeps plans does not plan again for another number of elements', async () => {
    const db = openTestDatabase(database.url, { maxConnections: 1, keepPlans: true });
    for (const size of [1, 300]) {
      const deviceIds = Array.from({ length: size }, (_, i) => i);
      await listDeviceStates(db, deviceIds);
    }
    const plans = await db.query(
      `select custom_plans, generic_plans from pg_prepared_statements where name = 'ingest-devices'`,
    );
    await db.close();
    expect(plans.rows).toEqual([{ custom_plans: 0, generic_plans: 2 }]);
  });
});
