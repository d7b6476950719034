import { afterAll, beforeAll, expect, it } from 'vitest';
import { listMigrations, migrationsDir } from '../../src/db/schema-state.ts';
import { migrate } from '../../src/db/migrate.ts';
import { findUsage } from '../../src/quotas/quotas.ts';
import { migrateTo, silent } from '../db/earlier.ts';
import { emptyDatabase, type TestDatabase } from '../support/database.ts';
import { runOn } from '../support/template.ts';

let database: TestDatabase;
beforeAll(async () => {
  database = await emptyDatabase();
  const names = (await listMigrations(migrationsDir)).map(({ name }) => name);
  await migrateTo(database.url, names.indexOf('000010_quotas'));
});
afterAll(() => database.drop());

const body = '{"puId":1,"initStId":1,"states":[{"stId":1,"name":"größer"}]}';

it('counts what accounts had stored before', async () => {
  const ids = await runOn(database.url, async (client) => {
    const { rows } = await client.query<{ id: string }>(
      `insert into account (email, password_hash)
       values ('one@example.org', ''), ('none@example.org', '') returning id`,
    );
    const [one] = rows;
    for (let i = 0; i < 3; i += 1)
      await client.query(
        `insert into device (account_id, connector_id, configuration) values ($1, 1, '{}')`,
        [one?.id],
      );
    await client.query(`insert into purpose (account_id, body) values ($1, $2), ($1, $2)`, [
      one?.id,
      body,
    ]);
    return rows.map(({ id }) => Number(id));
  });
  await migrate(database.url, { log: silent });
  const [one, none] = await Promise.all(ids.map((id) => findUsage(database.db, id)));
  const purposeBytes = 2 * Buffer.byteLength(body);
  expect(one?.used).toMatchObject({ devices: 3, purposes: 2, purposeBytes, devicesPerDay: 0 });
  expect(none?.used).toMatchObject({ devices: 0, purposes: 0, purposeBytes: 0, devicesPerDay: 0 });
});
