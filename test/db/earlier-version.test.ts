import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { migrate } from '../../src/db/migrate.ts';
import { readSchemaState } from '../../src/db/schema-state.ts';
import { databaseKinds, emptyDatabase, type TestDatabase } from '../support/database.ts';
import { schema } from '../support/template.ts';
import { migrateTo, silent } from './earlier.ts';

describe.each(databaseKinds)('a database of 0.1.0 on %s', (kind) => {
  let database: TestDatabase;
  beforeEach(async () => {
    database = await emptyDatabase(kind);
    await migrateTo(database.url, 7);
    await database.db.query(
      `insert into account (email, password_hash) values ('a@b.example', 'x')`,
    );
    await database.db.query('create table public.of_somebody_else (n integer)');
  });
  afterEach(() => database.drop());

  it('is moved out of reach of 0.1.0, with all that it holds, and nothing else', async () => {
    const storages = await Promise.all(
      Array.from({ length: 3 }, () => migrate(database.url, { log: silent })),
    );
    expect(storages.map((storage) => storage.schema)).toEqual(Array(3).fill(schema));
    const { rows } = await database.db.query('select email from account');
    expect(rows).toEqual([{ email: 'a@b.example' }]);
    const { rows: left } = await database.db.query<{ name: string }>(
      `select relname as name from pg_class
        where relnamespace = 'public'::regnamespace and relkind in ('r', 'v', 'S')
          and not exists (select from pg_depend d where d.objid = pg_class.oid and deptype = 'e')
        order by 1`,
    );
    expect(left.map(({ name }) => name)).toEqual([
      'migration',
      'migration_id_seq',
      'of_somebody_else',
      'sensorium_schema',
    ]);
  });

  it('keeps what it says of its own migrations: by whom, is not known', async () => {
    await migrate(database.url, { log: silent });
    const { applied } = await readSchemaState(database.db);
    expect(applied.slice(0, 7).map((each) => [each.programVersion, each.leastWriter])).toEqual(
      Array.from({ length: 7 }, () => [null, null]),
    );
  });
});
