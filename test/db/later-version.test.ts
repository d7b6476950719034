import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { migrate } from '../../src/db/migrate.ts';
import { schemaNameFor } from '../../src/db/database.ts';
import { readSchemaState } from '../../src/db/schema-state.ts';
import { version } from '../../src/version.ts';
import { databaseKinds, testDatabase, type TestDatabase } from '../support/database.ts';
import { schema } from '../support/template.ts';
import { makeLaterMigrations, type LaterMigration } from '../support/tomorrow.ts';
import { silent } from './earlier.ts';

const later = { name: '900000_later', sql: 'create table of_later_versions (n integer)' };

describe.each(databaseKinds)('a database that a later version has migrated, on %s', (kind) => {
  let database: TestDatabase;
  beforeEach(async () => {
    database = await testDatabase(kind);
  });
  afterEach(() => database.drop());

  async function migrateTo(migrations: LaterMigration[], laterVersion = '98.7.6') {
    const { dir, remove } = makeLaterMigrations(migrations);
    try {
      return await migrate(database.url, { log: silent, version: laterVersion, dir });
    } finally {
      remove();
    }
  }

  const start = () => migrate(database.url, { log: silent });

  it('records which version ran which migration, and who may write', async () => {
    await migrateTo([{ ...later, leastWriter: '98.0.0' }]);
    const { applied, schema: current } = await readSchemaState(database.db);
    expect(applied[0]).toEqual({
      name: '000001_accounts-and-devices',
      programVersion: version,
      leastWriter: '0.1.0',
    });
    expect(applied.at(-1)).toEqual({
      name: later.name,
      programVersion: '98.7.6',
      leastWriter: '98.0.0',
    });
    expect(current).toEqual({
      name: 'sensorium_98_0_0',
      leastWriter: '98.0.0',
      changedBy: '98.7.6',
    });
  });

  it('is opened if its migration lets this version write', async () => {
    const { schema: present } = await readSchemaState(database.db);
    const opened = await migrateTo([{ ...later, leastWriter: present?.leastWriter ?? '' }]);
    expect(opened.schema).toBe(schema);
    expect(await start()).toMatchObject({ kind, schema });
    await database.db.query('select count(*) from of_later_versions');
  });

  it('stays open for this version if the migration only excludes earlier ones', async () => {
    await database.db.query('select count(*) from device');
    const own = schemaNameFor(version);
    const opened = await migrateTo([{ ...later, leastWriter: version }]);
    expect(opened.schema).toBe(own);
    expect(await start()).toMatchObject({ kind, schema: own });
    // Connections from before continue to work too.
    await database.db.query('select count(*) from device');
    await database.db.query('select count(*) from of_later_versions');
  });

  it('is otherwise refused, with the names of the migration and the version', async () => {
    await migrateTo([{ ...later, leastWriter: '98.0.0' }]);
    await expect(start()).rejects.toThrow(
      new RegExp(
        `${later.name}, run by version 98\\.7\\.6, .* allow version ${version} to write.*\n.*98\\.0\\.0`,
      ),
    );
  });

  it('is refused if the migration does not say who may write', async () => {
    await database.db.query('insert into public.migration (name, run_on) values ($1, now())', [
      later.name,
    ]);
    await expect(start()).rejects.toThrow(`${later.name}, run by a version that was not recorded`);
  });

  it('is refused from the moment its tables were moved, whatever happened to the migration', async () => {
    const broken = { name: later.name, leastWriter: '98.0.0', sql: 'select 1 / 0' };
    await expect(migrateTo([broken])).rejects.toThrow('division by zero');
    await expect(start()).rejects.toThrow(
      /98\.7\.6 migrated .* only version 98\.0\.0 or later to write/,
    );
    // The later version continues where it was interrupted.
    const opened = await migrateTo([{ ...later, leastWriter: '98.0.0' }]);
    expect(opened.schema).toBe('sensorium_98_0_0');
  });

  it('has all its tables, functions and answers under the new name', async () => {
    const listObjects = `
      select relname as name from pg_class where relnamespace = $1::regnamespace
      union all select proname from pg_proc where pronamespace = $1::regnamespace
      order by 1`;
    const { rows: before } = await database.db.query(listObjects, [schema]);
    await migrateTo([{ name: later.name, sql: 'select 1', leastWriter: '98.0.0' }]);
    const { rows: after } = await database.db.query(listObjects, ['sensorium_98_0_0']);
    expect(after).toEqual(before);
    await expect(database.db.query('select from device')).rejects.toMatchObject({
      code: 'unavailable',
    });
  });
});
