import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  findCurrentSchema,
  newestOf,
  readSchemaState,
  refuseForeign,
} from '../../src/db/schema-state.ts';
import { listKnownMigrations } from '../../src/db/baseline.ts';
import { migrate } from '../../src/db/migrate.ts';
import { silent } from '../db/earlier.ts';
import { databaseKinds, testDatabase, type TestDatabase } from '../support/database.ts';
import { makeJobTables } from '../support/old-jobs.ts';
import { runOn, schema as present } from '../support/template.ts';
import { fixtures, pendingOf, upgradeCases } from './cases.ts';
import { filesOf, type Fixture } from './fixture.ts';
import { install, type Installation } from './install.ts';

// From 0.2.0 on a version may run beside a later one whose migrations allow it (docs/upgrading.md).
const known = await listKnownMigrations();

/** Whether a version may continue after these migrations. */
const isAllowed = (version: string, migrations: typeof known) =>
  newestOf([version, ...migrations.map(({ leastWriter }) => leastWriter)]) === version;

/** Whether a program of a fixture's version starts on a database in this state. */
const startOn = ({ version, migrations }: Fixture, state: Parameters<typeof refuseForeign>[0]) =>
  refuseForeign(
    state,
    migrations.map((name) => ({ name, leastWriter: version })),
    version,
  );

const earlier = fixtures
  .filter(({ version }) => version !== '0.1.0')
  .flatMap((fixture) => databaseKinds.map((kind) => ({ version: fixture.version, fixture, kind })));

describe.each(earlier)('$version on a database that this version made, on $kind', (given) => {
  const { version, fixture, kind } = given;
  let database: TestDatabase;
  beforeAll(async () => {
    database = await testDatabase(kind);
  });
  afterAll(() => database?.drop());

  it('starts and finds its tables, unless a migration does not allow it', async () => {
    const state = await runOn(database.url, readSchemaState);
    if (!isAllowed(version, known)) {
      expect(() => startOn(fixture, state)).toThrow(`this is ${version}`);
      return;
    }
    expect(() => startOn(fixture, state)).not.toThrow();
    // The earlier version looks for its tables there.
    expect(state.schema?.name).toBe('sensorium_0_2_0');
  });

  it.runIf(isAllowed(version, known))('writes its rows: new columns have defaults', async () => {
    await makeJobTables(database.url);
    const rows = await readFile(filesOf(version).rows, 'utf8');
    const load = `set search_path to ${present}, public; begin; ${rows}; commit`;
    await runOn(database.url, (client) => client.query(load));
    const { rows: found } = await database.db.query('select count(*) as devices from device');
    // Without the device that was removed.
    expect(found).toEqual([{ devices: fixture.devices.length - 1 }]);
  });
});

const cases = upgradeCases.flatMap(({ version, fixture, kind }) =>
  kind === 'backup' ? [] : { version, fixture, kind },
);

describe.each(cases)('$version beside this version, on $kind', ({ version, fixture, kind }) => {
  const pending = pendingOf(fixture);

  let installation: Installation;
  beforeAll(async () => {
    installation = await install(fixture, kind);
  });
  afterAll(() => installation?.remove());

  it('finds its tables in their place, unless a migration does not allow it', async () => {
    const before = await installation.database.run(findCurrentSchema);
    expect(before).toMatchObject({ changedBy: version });
    await migrate(installation.variables['DATABASE_URL'] ?? '', { log: silent });
    const state = await installation.database.run(readSchemaState);
    expect(state.applied.map(({ name }) => name)).toEqual(known.map(({ name }) => name));
    if (!isAllowed(version, pending)) {
      const leastWriters = pending.map(({ leastWriter }) => leastWriter);
      expect(state.schema?.name).toBe(`sensorium_${newestOf(leastWriters).replaceAll('.', '_')}`);
      expect(() => startOn(fixture, state)).toThrow(`this is ${version}`);
      return;
    }
    expect(state.schema).toEqual(before);
    expect(() => startOn(fixture, state)).not.toThrow();
  });
});
