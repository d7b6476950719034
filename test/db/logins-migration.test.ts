import { afterAll, beforeAll, expect, it } from 'vitest';
import { verifyCredentials } from '../../src/accounts/account.ts';
import { createPasswords } from '../../src/accounts/passwords.ts';
import { findAccountByEmail } from '../../src/accounts/queries.ts';
import { createThrottle } from '../../src/accounts/login-limits.ts';
import { startRefusalLog } from '../../src/audit/refusals.ts';
import { migrate } from '../../src/db/migrate.ts';
import { emptyDatabase, type TestDatabase } from '../support/database.ts';
import { runOn } from '../support/template.ts';
import { migrateTo, silent } from './earlier.ts';

const password = 'correct horse';
const passwords = createPasswords();
const countLogin = async () => {};

let database: TestDatabase;
beforeAll(async () => {
  database = await emptyDatabase();
  await migrateTo(database.url, 8);
});
afterAll(() => database.drop());

it('lets everybody log in who could, in whatever case they write their address', async () => {
  const { db, url } = database;
  const emails = [
    'Ada@Example.com',
    'MÜLLER@example.com',
    `o'brien@example.com`,
    // A locale tells these apart that JavaScript takes for one: the second is found as it is.
    'li\u0307z@example.com',
    'Lİz@example.com',
  ];
  const passwordHash = await passwords.hash(password, { address: '', who: '' });
  await runOn(url, async (client) => {
    await client.query('drop index account_email');
    await client.query(
      'insert into account (email, password_hash) select email, $2 from unnest($1::text[]) email',
      [emails, passwordHash],
    );
    await client.query(`create unique index account_email on account (lower(email collate "C"))`);
  });
  await migrate(url, { log: silent });

  const attempts = { attempts: 10, windowSeconds: 60 };
  const throttle = createThrottle({ perAccount: attempts, perAddress: attempts });
  const onError = (error: unknown) => {
    throw error;
  };
  const refusals = startRefusalLog({ db, clock: Date.now, onError });
  const logIn = async (email: string) => {
    const login = { email, password, address: '192.0.2.1' };
    const deps = { db, passwords, throttle, countLogin, refusals };
    return (await verifyCredentials(deps, login)).email;
  };
  for (const email of emails) expect(await logIn(email)).toBe(email);
  expect(await logIn('ADA@EXAMPLE.COM')).toBe('Ada@Example.com');
  expect(await logIn('müller@example.com')).toBe('MÜLLER@example.com');
  expect(await logIn('LI\u0307Z@example.com')).toBe('li\u0307z@example.com');
  expect(await findAccountByEmail(db, 'adA@example.com')).toMatchObject({ email: emails[0] });
  expect(await findAccountByEmail(db, 'ada@example.co')).toBeNull();
  await refusals.close();
});
