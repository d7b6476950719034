import { existsSync, rmSync } from 'node:fs';
import { copyFile, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { startEmbeddedDatabase } from '../../src/db/embedded/embedded.ts';
import type { Sql } from '../../src/db/sql.ts';
import { deriveSecretCheck } from '../../src/config/keys.ts';
import type { Registration } from '../journeys/app.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { openTestDatabase } from '../support/database.ts';
import { createPrograms, fill, letsIn, logIn, readChecks, statusOf } from './program.ts';

const dir = makeTemporaryDir();
const dataDir = join(dir, 'data');
const file = join(dataDir, 'secret');
const kept = join(dir, 'kept');
const env = { DATA_DIR: dataDir };
const programs = createPrograms();
afterEach(() => programs.stopAll());
afterAll(() => rmSync(dir, { recursive: true }));

/** Queries the database while no service runs. */
async function withDatabase<T>(ask: (db: Sql) => Promise<T>): Promise<T> {
  const log = { info: () => undefined, warn: () => undefined };
  const embedded = await startEmbeddedDatabase({ dataDir, log });
  const db = openTestDatabase(embedded.connectionString);
  try {
    return await ask(db);
  } finally {
    await db.close();
    await embedded.stop();
  }
}

const checks = () => withDatabase(readChecks);

// Each starts programs again and again, which takes long if others load the machine.
const options = { timeout: 240_000 };

describe('the secret of the embedded database', options, () => {
  let token: string;
  let device: Registration;
  let before: Awaited<ReturnType<typeof checks>>;

  beforeAll(async () => {
    const service = await programs.start(env);
    ({ token, device } = await fill(service.url));
    await service.stop();
    await copyFile(file, kept);
    before = await checks();
  });

  test('is created at the first start, for its owner only, and recorded', async () => {
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const secret = (await readFile(file, 'utf8')).trim();
    expect(before.map(({ value }) => value)).toEqual([deriveSecretCheck(secret)]);
    const status = await programs.runSecret(env, ['status']);
    expect(status).toMatchObject({ status: 0, stdout: `${file}: is this database's secret.\n` });
  });

  test('is not created anew if it is gone: the service says what to restore', async () => {
    await rm(file);
    const said = await programs.expectRefusal(env);
    expect(said).toMatch(
      /^\S+secret: does not exist, and neither SECRET nor SECRET_FILE is set\.$/m,
    );
    expect(said).toContain('1 device and 2 sessions ');
    expect(said).toMatch(new RegExp(`^To restore it: restore ${file} from a backup`, 'm'));
    expect(said).toContain('npm run secret -- accept');
    expect(existsSync(file)).toBe(false);
    const status = await programs.runSecret(env, ['status']);
    expect(status).toMatchObject({ status: 1, stdout: said });
    expect(existsSync(file)).toBe(false);
    expect(await checks()).toEqual(before);
  });

  test('cannot be replaced by another one, from a file or from the environment', async () => {
    const another = 'another secret, that is long enough to be one\n';
    await writeFile(file, another, { mode: 0o600 });
    expect(await programs.expectRefusal(env)).toMatch(
      new RegExp(
        `^${file}: is not the secret .*\n.*\nTo restore it: restore ${file} from a backup`,
      ),
    );
    expect(await readFile(file, 'utf8')).toBe(another);
    await copyFile(kept, file);
    const wrong = { ...env, SECRET: another };
    expect(await programs.expectRefusal(wrong)).toMatch(
      new RegExp(
        `^SECRET: is not the secret .*\n.*\nTo restore it: remove SECRET\\. ${file} holds`,
      ),
    );
    const withPrevious = { ...wrong, SECRET_PREVIOUS: `${another}, once more` };
    expect(await programs.expectRefusal(withPrevious)).toContain('SECRET_PREVIOUS is not that one');
    await writeFile(file, 'cut\n');
    expect(await programs.expectRefusal(env)).toMatch(
      /secret: expected 32 bytes or more; restore it/,
    );
    expect(await checks()).toEqual(before);
  });

  test('opens everything as before once it is restored', async () => {
    await copyFile(kept, file);
    const service = await programs.start(env);
    expect(await statusOf(service.url, token)).toBe(200);
    expect(await letsIn(service.mqttPort, device)).toBe(true);
    await service.stop();
    expect(await checks()).toEqual(before);
  });

  test('is the one that version 0.1.0 had and did not record, not a new one', async () => {
    await withDatabase((db) => db.query('delete from secret_check'));
    await rm(file);
    expect(await programs.expectRefusal(env)).toMatch(/secret: does not exist, and neither/);
    expect(existsSync(file)).toBe(false);
    expect(await checks()).toEqual([]);
    await copyFile(kept, file);
    const service = await programs.start(env);
    expect(service.process.stdout()).toContain("secret: recorded as this database's secret");
    expect(await letsIn(service.mqttPort, device)).toBe(true);
    await service.stop();
    expect((await checks()).map(({ value }) => value)).toEqual(before.map(({ value }) => value));
  });

  test('is requested after restoring a backup without it', async () => {
    const backup = join(dir, 'backup');
    const restored = { DATA_DIR: join(dir, 'restored') };
    const secret = (await readFile(kept, 'utf8')).trim();
    // As if the environment gave it: the data directory then has none.
    await rename(file, `${file}.away`);
    const made = await programs.runCommand('backup', { ...env, SECRET: secret }, [backup]);
    await rename(`${file}.away`, file);
    expect(made).toMatch(
      /^The backup does not contain the secret: also keep what SECRET provides\./m,
    );
    const said = await programs.runCommand('restore', restored, [backup]);
    expect(said).toMatch(/^The backup does not contain the secret: give the service the SECRET/m);
    expect(await programs.expectRefusal(restored)).toMatch(
      /restored\/secret: does not exist[^]*or set SECRET or SECRET_FILE/,
    );
    expect(existsSync(join(restored.DATA_DIR, 'secret'))).toBe(false);
    const service = await programs.start({ ...restored, SECRET: secret });
    expect(await letsIn(service.mqttPort, device)).toBe(true);
  });

  test('may be created anew beside SECRET_PREVIOUS, and the file must be kept', async () => {
    const secret = (await readFile(kept, 'utf8')).trim();
    await rm(file);
    const service = await programs.start({ ...env, SECRET_PREVIOUS: secret });
    expect(await letsIn(service.mqttPort, device)).toBe(true);
    await service.stop();
    const made = (await readFile(file, 'utf8')).trim();
    const noted = (await checks()).map(({ value }) => value);
    expect(noted).toEqual([made, secret].map(deriveSecretCheck));
    // Back to the one before, for the following tests.
    await copyFile(kept, file);
    await (await programs.start({ ...env, SECRET_PREVIOUS: made })).stop();
    await (await programs.start(env)).stop();
    expect((await checks()).map(({ value }) => value)).toEqual([deriveSecretCheck(secret)]);
  });

  test('is accepted anew only after a yes, which ends everything of the old one', async () => {
    expect(await programs.runSecret(env, ['accept'], 'yes\n')).toMatchObject({
      status: 0,
      stdout: `${file}: is this database's secret.\nNothing to accept.\n`,
    });
    await rm(file);
    for (const answer of ['no\n', 'y\n', '']) {
      const refused = await programs.runSecret(env, ['accept'], answer);
      expect(refused).toMatchObject({ status: 1, stderr: '' });
      expect(refused.stdout).toContain('This invalidates the tokens of 1 device and 2 sessions');
      expect(refused.stdout).toMatch(/Nothing was changed: expected yes\.\n$/);
      expect(existsSync(file)).toBe(false);
    }
    const accepted = await programs.runSecret(env, ['accept'], 'yes\n');
    expect(accepted).toMatchObject({ status: 0, stderr: '' });
    expect(accepted.stdout).toMatch(
      /^Accepted\. Created .*secret: keep a copy of it\.\nRestart every/m,
    );
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const made = (await readFile(file, 'utf8')).trim();
    expect((await checks()).map(({ value }) => value)).toEqual([deriveSecretCheck(made)]);

    const service = await programs.start(env);
    expect(await statusOf(service.url, token)).toBe(401);
    expect(await letsIn(service.mqttPort, device)).toBe(false);
    const headers = { authorization: `Bearer ${await logIn(service.url)}` };
    const path = `/v2/devices/${device.deviceAuthUuid}/token`;
    const answer = await fetch(service.url + path, { method: 'POST', headers });
    const { deviceAuthToken } = (await answer.json()) as { deviceAuthToken: string };
    expect(await letsIn(service.mqttPort, { ...device, deviceAuthToken })).toBe(true);
    await service.stop();
    // The previous one no longer matches.
    await copyFile(kept, file);
    expect(await programs.expectRefusal(env)).toContain('is not the secret that');
  });

  test('the command explains itself, and exits with 2 for what it does not understand', async () => {
    const [help, none, unknown, more] = await Promise.all([
      programs.runSecret(env, ['--help']),
      programs.runSecret(env, []),
      programs.runSecret(env, ['explode']),
      programs.runSecret(env, ['accept', 'a secret is no argument']),
    ]);
    expect(help).toMatchObject({ status: 0, stderr: '' });
    expect(help.stdout).toContain('npm run secret -- accept');
    for (const { status, stderr } of [none, unknown, more]) {
      expect(status).toBe(2);
      expect(stderr).toContain('Usage:');
    }
  });
});
