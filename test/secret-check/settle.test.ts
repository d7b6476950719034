import { randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { insertAccount } from '../../src/accounts/queries.ts';
import { deriveSecretCheck } from '../../src/config/keys.ts';
import { settleSecret } from '../../src/secret-check/secret-check.ts';
import { StartError } from '../../src/start-error.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { databaseKinds, testDatabase, type TestDatabase } from '../support/database.ts';
import { readChecks } from './program.ts';

const dir = makeTemporaryDir();
afterAll(() => rmSync(dir, { recursive: true }));

type SecretConfig = Parameters<typeof settleSecret>[1];
const newSecret = () => randomBytes(32).toString('hex');
const given = (secret: string | null, previousSecret: string | null = null): SecretConfig => {
  const dataDir = join(dir, randomBytes(8).toString('hex'));
  const secretPlace = secret === null ? join(dataDir, 'secret') : 'SECRET';
  return { secret, previousSecret, dataDir, secretPlace };
};

describe.each(databaseKinds)('the secret of a database on %s', (kind) => {
  let database: TestDatabase;
  const lines: string[] = [];
  const log = {
    info: (_: object, line: string) => lines.push(line),
    warn: (_: object, line: string) => lines.push(line),
  };
  const settle = (config: SecretConfig) => settleSecret(database.db, config, log);
  const noted = async () => (await readChecks(database.db)).map(({ value }) => value);
  beforeEach(async () => {
    lines.length = 0;
    database = await testDatabase(kind);
  });
  afterEach(() => database.drop());

  async function addDevice(): Promise<void> {
    const account = await insertAccount(database.db, {
      email: 'me@example.com',
      passwordHash: 'none',
    });
    await database.db.query(
      `insert into device (account_id, connector_id, configuration) values ($1, 1, '{}')`,
      [account?.accountId],
    );
  }

  async function addSession(expiresIn: string): Promise<void> {
    const account = await insertAccount(database.db, {
      email: `${expiresIn}@example.com`,
      passwordHash: 'none',
    });
    await database.db.query(
      `insert into session (id, account_id, kind, created_at, used_at, expires_at)
       values (gen_random_uuid(), $1, 'account', now(), now(), now() + $2::interval)`,
      [account?.accountId, expiresIn],
    );
  }

  test('of many processes that start at once on an empty one, all have a secret and one is recorded', async () => {
    const secrets = Array.from({ length: 8 }, newSecret);
    const settled = await Promise.all(secrets.map((secret) => settle(given(secret))));
    expect(settled).toEqual(secrets);
    const checks = await noted();
    expect(checks).toHaveLength(1);
    expect(secrets.map(deriveSecretCheck)).toContain(checks[0]);
    expect(lines).toHaveLength(7);
  });

  test('of many that start at once with devices there, one wins and the others refuse', async () => {
    await addDevice();
    const secrets = Array.from({ length: 8 }, newSecret);
    const results = await Promise.allSettled(secrets.map((secret) => settle(given(secret))));
    const won = results.flatMap((result) => (result.status === 'fulfilled' ? result.value : []));
    const errors = results.flatMap((result) =>
      result.status === 'rejected' ? [result.reason as unknown] : [],
    );
    expect(won).toHaveLength(1);
    expect(errors).toHaveLength(7);
    for (const error of errors) expect(error).toBeInstanceOf(StartError);
    expect(await noted()).toEqual(won.map(deriveSecretCheck));
    // Nobody may read the check values, and the secrets even less.
    const said = lines.join() + errors.map(String).join();
    for (const secret of secrets) {
      expect(said).not.toContain(secret);
      expect(said).not.toContain(deriveSecretCheck(secret));
    }
  });

  test('of many that create one in a data directory at once, all have the same', async () => {
    const config = given(null);
    const made = await Promise.all(Array.from({ length: 8 }, () => settle(config)));
    expect(new Set(made).size).toBe(1);
    expect(`${made[0]}\n`).toBe(await readFile(config.secretPlace, 'utf8'));
    expect(await noted()).toEqual([deriveSecretCheck(made[0] ?? '')]);
    expect(lines).toEqual([]);
  });

  test('may be another one once only expired sessions are left', async () => {
    const [first, second, third] = [newSecret(), newSecret(), newSecret()];
    await settle(given(first));
    await addSession('-1 second');
    expect(await settle(given(second))).toBe(second);
    expect(lines.join()).toMatch(/^SECRET: a different secret is adopted/);
    await addSession('1 hour');
    await expect(settle(given(third))).rejects.toThrow('0 devices and 1 session ');
    expect(await noted()).toEqual([deriveSecretCheck(second)]);
  });

  test('keeps the time at which it was recorded through a change', async () => {
    const [first, second] = [newSecret(), newSecret()];
    await addDevice();
    await settle(given(first));
    const [before] = await readChecks(database.db);
    await settle(given(second, first));
    expect(await readChecks(database.db)).toEqual([
      { value: deriveSecretCheck(second), noted_at: expect.any(Number) as number },
      before,
    ]);
    // Not before the device has a token of the new one. A refused start changes nothing.
    await expect(settle(given(second))).rejects.toThrow(
      '1 device still has a token of the previous secret',
    );
    expect(await noted()).toEqual([second, first].map(deriveSecretCheck));
    await database.db.query('update device set token_secret = $1', [
      deriveSecretCheck(second).slice(0, 8),
    ]);
    await settle(given(second));
    expect(await noted()).toEqual([deriveSecretCheck(second)]);
    expect(lines.map((line) => line.replace(/;.*/, ''))).toEqual([
      "SECRET: recorded as this database's secret",
      'SECRET: recorded as the newer secret',
      'SECRET: the newest secret came without SECRET_PREVIOUS',
    ]);
  });
});
