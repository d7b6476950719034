import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import {
  findCurrentSchema,
  newestOf,
  readSchemaState,
  refuseForeign,
} from '../../src/db/schema-state.ts';
import { migrate } from '../../src/db/migrate.ts';
import { migrateWorker } from '../../src/notifications/old-jobs.ts';
import { silent } from '../db/earlier.ts';
import { testDatabase } from '../support/database.ts';
import { runOn, schema as present } from '../support/template.ts';
import { pendingOf, upgradeCases } from './cases.ts';
import { filesOf } from './fixture.ts';
import { install, type Installation } from './install.ts';

// From 0.2.0 on a version may run beside a later one whose migrations allow it (docs/upgrading.md).
const cases = upgradeCases.flatMap(({ version, fixture, kind }) =>
  kind === 'backup' || version === '0.1.0' ? [] : { version, fixture, kind },
);

describe.each(cases)('$version beside this version, on $kind', ({ version, fixture, kind }) => {
  const pending = pendingOf(fixture);
  const leastWriters = pending.map(({ leastWriter }) => leastWriter);
  const isAllowed = newestOf([version, ...leastWriters]) === version;

  let installation: Installation;
  beforeAll(async () => {
    installation = await install(fixture, kind);
  });
  afterAll(() => installation?.remove());

  it('finds its tables where they were, unless a migration does not allow it', async () => {
    const before = await installation.database.run(findCurrentSchema);
    expect(before).toMatchObject({ changedBy: version });
    await migrate(installation.variables['DATABASE_URL'] ?? '', { log: silent });
    const state = await installation.database.run(readSchemaState);
    expect(state.applied.map(({ name }) => name)).toEqual([
      ...fixture.migrations,
      ...pending.map(({ name }) => name),
    ]);
    const known = fixture.migrations.map((name) => ({ name, leastWriter: version }));
    const start = () => refuseForeign(state, known, version);
    if (!isAllowed) {
      expect(state.schema?.name).toBe(`sensorium_${newestOf(leastWriters).replaceAll('.', '_')}`);
      expect(start).toThrow(`this is ${version}`);
      return;
    }
    expect(state.schema).toEqual(before);
    expect(start).not.toThrow();
  });

  it.runIf(isAllowed)('writes rows as before: new columns have defaults', async () => {
    const database = await testDatabase(kind);
    try {
      await migrateWorker(database.url, silent);
      const rows = await readFile(filesOf(version).rows, 'utf8');
      const load = `set search_path to ${present}, public; begin; ${rows}; commit`;
      await runOn(database.url, (client) => client.query(load));
      const { rows: found } = await database.db.query('select count(*) as devices from device');
      // The one that was removed is not among them.
      expect(found).toEqual([{ devices: fixture.devices.length - 1 }]);
    } finally {
      await database.drop();
    }
  });
});
