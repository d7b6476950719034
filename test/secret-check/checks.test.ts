import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { insertAccount } from '../../src/accounts/queries.ts';
import { deriveSecretCheck } from '../../src/config/keys.ts';
import { listChecks, settleSecret } from '../../src/secret-check/secret-check.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';

type Row = { noted: string; secret: string | null; previous?: string | null; isInUse?: boolean };

const dir = mkdtempSync(join(tmpdir(), 'sensorium-secrets-'));
const names = new Map(['A', 'B', 'C'].map((name) => [deriveSecretCheck(name), name]));
const log = { info: () => undefined, warn: () => undefined };
let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(async () => {
  await database?.drop();
  rmSync(dir, { recursive: true });
});
beforeEach(async () => {
  await database.db.query('delete from account');
  await database.db.query('delete from secret_check');
});

/** The check values after a start with these secrets, by the secrets' names. Rejects if it is refused. */
async function start({ noted, secret, previous = null, isInUse = true }: Row): Promise<string> {
  const { db } = database;
  const checks = noted === '' ? [] : noted.split(' ').map(deriveSecretCheck);
  await db.query(
    `insert into secret_check (value, place)
     select value, place from unnest($1::text[]) with ordinality as noted (value, place)`,
    [checks],
  );
  if (isInUse) {
    const account = await insertAccount(db, { email: 'me@example.com', passwordHash: 'none' });
    await db.query(
      `insert into device (account_id, connector_id, configuration) values ($1, 1, '{}')`,
      [account?.accountId],
    );
  }
  const dataDir = join(dir, randomBytes(8).toString('hex'));
  const config = { secret, previousSecret: previous, dataDir, secretPlace: 'SECRET' };
  await settleSecret(db, config, log);
  return (await listChecks(db)).map((check) => names.get(check) ?? 'new').join(' ');
}

describe('a secret is allowed', () => {
  test.each<Row>([
    { noted: 'A', secret: 'A' },
    { noted: 'B A', secret: 'A' },
    { noted: 'A', secret: 'B', previous: 'A' },
    // There is none, but what the database knows is still accepted, so a new one may be created.
    { noted: 'A', secret: null, previous: 'A' },
    // Of a version that recorded nothing.
    { noted: '', secret: 'A' },
    { noted: '', secret: null, isInUse: false },
    { noted: 'A', secret: 'B', isInUse: false },
    { noted: 'A', secret: null, isInUse: false },
  ])('$noted noted, $secret given, previous $previous, in use: $isInUse', async (row) => {
    await expect(start(row)).resolves.not.toBe('');
  });
});

describe('a secret is refused', () => {
  test.each<Row>([
    { noted: 'A', secret: 'B' },
    { noted: 'A', secret: null },
    { noted: 'A', secret: 'B', previous: 'C' },
    { noted: '', secret: null },
    // It is unknown whether the previous one is theirs, and a new one is not.
    { noted: '', secret: null, previous: 'A' },
  ])('$noted noted, $secret given, previous $previous', async (row) => {
    await expect(start(row)).rejects.toMatchObject({ name: 'StartError' });
  });
});

describe('the check values that are kept afterwards', () => {
  const table: [noted: string, secret: string, previous: string | null, next: string][] = [
    ['', 'A', null, 'A'],
    ['A', 'A', null, 'A'],
    ['A', 'B', null, 'B'],
    ['', 'B', 'A', 'B A'],
    ['C', 'B', 'A', 'B A'],
    ['A', 'A', 'A', 'A'],
    // One process after the other gets B, with A as the previous one.
    ['A', 'B', 'A', 'B A'],
    ['B A', 'B', 'A', 'B A'],
    ['B A', 'A', null, 'B A'],
    // The first without SECRET_PREVIOUS ends the change; one that still has it does not begin it again.
    ['B A', 'B', null, 'B'],
    ['B', 'B', 'A', 'B'],
    // All were told of B before it was used.
    ['A', 'A', 'B', 'A'],
    // Back to A.
    ['B A', 'A', 'B', 'A B'],
    // The next change begins before the last one has ended.
    ['B A', 'C', 'B', 'C B A'],
    ['C B A', 'B', 'A', 'C B A'],
    ['C B A', 'C', null, 'C'],
  ];
  test.each(table)('"%s" noted, %s given, previous %s: "%s"', async (...row) => {
    const [noted, secret, previous, next] = row;
    expect(await start({ noted, secret, previous, isInUse: false })).toBe(next);
  });
});
