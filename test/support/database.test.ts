import { afterAll, describe, expect, it } from 'vitest';
import { databaseKinds, testDatabase, type TestDatabase } from './database.ts';

describe.each(databaseKinds)('a test database on %s', (kind) => {
  let database: TestDatabase;
  afterAll(() => database.drop());

  it('is migrated, empty and its own', async () => {
    database = await testDatabase(kind);
    const other = await testDatabase(kind);
    await other.db.query(`insert into account (email, password_hash) values ('a@b.example', 'x')`);
    await other.drop();
    const { rows } = await database.db.query('select count(*) as accounts from account');
    expect(rows).toEqual([{ accounts: 0 }]);
  });
});
