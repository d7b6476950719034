import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { deriveSecretCheck } from '../../src/config/keys.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { databaseKinds, testDatabase, type TestDatabase } from '../support/database.ts';
import { shareOf } from '../support/share.ts';
import { createPrograms, fill, readChecks } from './program.ts';

const first = 'the first secret of a test, long enough to be one';
const second = 'the second secret of a test, long enough to be one';

const dir = makeTemporaryDir();
const programs = createPrograms();
afterAll(() => rmSync(dir, { recursive: true }));

// Each starts programs again and again, which takes long if others load the machine.
const options = { timeout: 240_000 };

describe.each(shareOf(databaseKinds))('processes on one database on %s', options, (kind) => {
  let database: TestDatabase;
  beforeEach(async () => {
    database = await testDatabase(kind);
  });
  afterEach(async () => {
    await programs.stopAll();
    await database.drop();
  });

  const withSecret = (SECRET: string, SECRET_PREVIOUS = '') => ({
    DATABASE_URL: database.url,
    DATA_DIR: join(dir, 'data'),
    SECRET,
    SECRET_PREVIOUS,
  });

  test('are refused with another secret, by variable and by file', async () => {
    const service = await programs.start(withSecret(first));
    await fill(service.url);
    const before = await readChecks(database.db);
    expect(before.map(({ value }) => value)).toEqual([deriveSecretCheck(first)]);

    // It makes no difference whether the others run.
    const said = await programs.expectRefusal(withSecret(second));
    await service.stop();
    expect(await programs.expectRefusal(withSecret(second))).toBe(said);
    expect(said).toMatch(/^SECRET: is not the secret .*\n.*1 device and 2 sessions .*\n/);
    expect(said).toMatch(/^To restore it: set SECRET to its earlier value\.$/m);
    const SECRET_FILE = join(dir, 'secret-of-a-file');
    writeFileSync(SECRET_FILE, `${second}\n`);
    const byFile = await programs.expectRefusal({ ...withSecret(''), SECRET_FILE });
    expect(byFile).toMatch(new RegExp(`^SECRET_FILE ${SECRET_FILE}: is not the secret`));
    expect(byFile).toContain(`restore the previous content of SECRET_FILE ${SECRET_FILE}`);
    expect(await programs.expectRefusal(withSecret(''))).toMatch(
      /^SECRET: required with DATABASE_URL, or SECRET_FILE instead\. Use the secret that this database was used with/,
    );
    expect(await readChecks(database.db)).toEqual(before);
    expect(said + byFile).not.toContain(second);
    expect(said + byFile).not.toMatch(/[0-9a-f]{64}/);
  });
});
