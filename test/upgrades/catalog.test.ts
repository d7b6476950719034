import { readFile } from 'node:fs/promises';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { baseline } from '../../src/db/baseline.ts';
import { migrate } from '../../src/db/migrate.ts';
import { silent } from '../db/earlier.ts';
import { databaseKinds, emptyDatabase } from '../support/database.ts';
import { runOn } from '../support/template.ts';
import { readCatalog } from './catalog.ts';
import { catalogFile, readFixture } from './fixture.ts';
import { install, type Installation } from './install.ts';
import { findSchema } from './rows.ts';

// 0.4.0 reached its schema through 35 migrations. make-catalog.ts ran its own tree and recorded what they made of an
// empty database; src/db/schema must produce the same.
const version = '0.4.0';
const recorded = (kind: (typeof databaseKinds)[number]) =>
  readFile(catalogFile(version, kind), 'utf8');

describe.each(databaseKinds)('on %s', (kind) => {
  it('the baseline produces the schema that the migrations of 0.4.0 produced', async () => {
    const database = await emptyDatabase(kind);
    const made = await migrate(database.url, { log: silent, count: baseline.length });
    expect(await runOn(database.url, (client) => readCatalog(client, made.schema))).toBe(
      await recorded(kind),
    );
    await database.drop();
  });
});

describe('the embedded database that 0.4.0 left', () => {
  let installation: Installation;
  beforeAll(async () => {
    installation = await install(await readFixture(version), 'backup');
  });
  afterAll(() => installation?.remove());

  it('is what the record says: an empty database and one with rows are migrated to the same schema', async () => {
    const found = await installation.database.runAlone(async (client) =>
      readCatalog(client, await findSchema(client)),
    );
    // The default names the secret of the database's tokens.
    expect(found.replace(/(column token_secret .*) default '[^']*'/, "$1 default ''")).toBe(
      await recorded('postgresql'),
    );
  });
});
