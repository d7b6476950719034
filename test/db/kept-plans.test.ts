import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { createLocalBus } from '../../src/bus/bus.ts';
import type { Database } from '../../src/db/database.ts';
import { describeRoute } from '../../src/devices/device.ts';
import type { RequestInfo } from '../../src/http/request.ts';
import { listDeviceStates } from '../../src/ingest/write.ts';
import { createDownlinks } from '../../src/profiles/downlinks.ts';
import { startDatabaseSessions } from '../../src/sessions/database.ts';
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

  /** Each looks for something that is not there. */
  const looks: Record<string, (db: Database) => Promise<unknown>> = {
    'devices-configurations': async (db) => {
      const params = { deviceAuthUuid: crypto.randomUUID() };
      const account = { accountId: 1, accountUuid: '', sessionId: '' };
      const request = { receivedTs: 0 } as RequestInfo;
      const asked = { params, account, request, query: {}, body: undefined };
      await expect(describeRoute({ db }).call(asked)).rejects.toMatchObject({ code: 'not-found' });
    },
    'profiles-due': async (db) => {
      const bus = createLocalBus({ onListenerError: () => {} });
      const device = { deviceId: 1, uuid: crypto.randomUUID(), accountId: 1 };
      const due = createDownlinks({ db, bus }).due(device, 'profile');
      await expect(due).rejects.toMatchObject({ code: 'device-gone' });
    },
    'load-sessions': async (db) => {
      const sessions = startDatabaseSessions(db, { believedTs: () => null, onError: () => {} });
      expect(await sessions.find(crypto.randomUUID(), 0)).toBeNull();
      await sessions.close();
    },
  };

  test.each(Object.keys(looks))('%s is not planned each time', async (name) => {
    const times = 12;
    const plans = await database.db.transaction(async (tx) => {
      // All of them on the connection of the transaction.
      const db: Database = { ...database.db, query: tx.query.bind(tx) };
      for (let i = 0; i < times; i += 1) await looks[name]?.(db);
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
