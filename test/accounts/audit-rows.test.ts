import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { forgetEntries, insertEntry, operator } from '../../src/audit/audit.ts';
import { startRefusalLog } from '../../src/audit/refusals.ts';
import { insertAccount } from '../support/accounts.ts';
import {
  databaseKinds,
  openTestDatabase,
  testDatabase,
  type TestDatabase,
} from '../support/database.ts';
import { type AuditTrail, startAuditTrail } from './audit-trail.ts';

const hourMs = 3_600_000;
const t0 = Date.UTC(2026, 5, 1);

describe.each(databaseKinds)('rows of the audit trail on %s', (kind) => {
  let database: TestDatabase;
  let trail: AuditTrail;
  beforeAll(async () => {
    database = await testDatabase(kind);
    trail = await startAuditTrail(database.db);
  });
  afterAll(async () => {
    await trail.close();
    await database.drop();
  });

  const newAccount = () => insertAccount(database.db);
  const list = (accountId: number) => trail.list(accountId);

  type Refusal = { accountId: number; address: string };
  /** Notes them at one time, and writes them at once. */
  async function refuse(refusals: Refusal[], { db = database.db, ts = t0 } = {}) {
    const onError = (error: unknown) => void errors.push(error);
    const errors: unknown[] = [];
    const log = startRefusalLog({ db, clock: () => ts, intervalMs: 100_000, onError });
    for (const { accountId, address } of refusals)
      log.note(accountId, 'login-refused', { by: 'nobody', sessionId: null, address });
    await log.close();
    expect(errors).toEqual([]);
  }

  test('of refused logins: a hundred an hour, and one for all other addresses', async () => {
    const accountId = await newAccount();
    const many = Array.from({ length: 150 }, (_, n) => ({ accountId, address: `2001:db8::${n}` }));
    await refuse(many.slice(0, 60), { ts: t0 + 1 });
    await refuse(many.slice(60), { ts: t0 + 1 });
    await refuse(many, { ts: t0 + 2 });
    const entries = await list(accountId);
    expect(entries).toHaveLength(101);
    const others = entries.filter(({ address }) => address === undefined);
    expect(others).toMatchObject([{ count: 100, timestamp: t0 + 1, lastTs: t0 + 2 }]);
    expect(entries.reduce((sum, { count = 0 }) => sum + count, 0)).toBe(300);
    await refuse([{ accountId, address: '2001:db8::1' }], { ts: t0 + hourMs });
    expect(await list(accountId)).toHaveLength(102);
  });

  test('of refused logins are counted correctly by several processes at once', async () => {
    const [one, other] = [await newAccount(), await newAccount()];
    const pools = [openTestDatabase(database.url), openTestDatabase(database.url)];
    const addresses = ['192.0.2.1', '192.0.2.2', '192.0.2.3'];
    const all = [one, other].flatMap((accountId) =>
      addresses.map((address) => ({ accountId, address })),
    );
    const write = (n: number) => refuse(n % 4 < 2 ? all : all.toReversed(), { db: pools[n % 2] });
    await Promise.all(Array.from({ length: 40 }, (_, n) => write(n)));
    for (const accountId of [one, other])
      expect((await list(accountId)).map(({ count }) => count)).toEqual([40, 40, 40]);
    for (const pool of pools) await pool.close();
  });

  test('of an account that is gone are left out, and do not block those of others', async () => {
    const accountId = await newAccount();
    await refuse([0, accountId].map((id) => ({ accountId: id, address: '192.0.2.1' })));
    expect(await list(accountId)).toHaveLength(1);
    await insertEntry(database.db, 0, { kind: 'disabled', actor: operator, ts: t0 });
    expect(await list(0)).toEqual([]);
  });

  test('are kept up to the newest 2,000 of a kind: a flood of one kind displaces no other', async () => {
    const accountId = await newAccount();
    await insertEntry(database.db, accountId, { kind: 'disabled', actor: operator, ts: t0 });
    await database.db.query(
      `insert into account_audit (account_id, ts, kind, actor)
       select $1, ms_to_timestamp($2::bigint + n), 'device-added', 'session' from generate_series(1, 5000) n`,
      [accountId, t0],
    );
    for (let n = 0; n < 64; n += 1) {
      const actor = { by: 'session', sessionId: null, address: '192.0.2.1' } as const;
      await insertEntry(database.db, accountId, {
        kind: 'device-added',
        actor,
        ts: t0 + 10_000 + n,
      });
    }
    const entries = await list(accountId);
    const added = entries.filter(({ kind }) => kind === 'device-added');
    expect(added.length).toBeGreaterThanOrEqual(2_000);
    expect(added.length).toBeLessThan(2_000 + 64);
    expect(added[0]?.timestamp).toBe(t0 + 10_063);
    expect(entries.at(-1)).toMatchObject({ kind: 'disabled', by: 'operator' });
  });

  test('are deleted when they are old', async () => {
    const accountId = await newAccount();
    const { db } = database;
    for (const days of [0, 1, 2])
      await insertEntry(db, accountId, {
        kind: 'enabled',
        actor: operator,
        ts: t0 - days * 24 * hourMs,
      });
    expect(await forgetEntries(db, t0 - 24 * hourMs)).toBe(1);
    expect((await list(accountId)).map(({ timestamp }) => timestamp)).toEqual([
      t0,
      t0 - 24 * hourMs,
    ]);
  });
});

describe('refused logins that wait for the database', () => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await testDatabase();
  });
  afterAll(() => database.drop());

  test('wait while it is unreachable, and are written once, at the end too', async () => {
    const { rows } = await database.db.query<{ id: number }>(
      `insert into account (email, password_hash) values ('a@example.org', '') returning id`,
    );
    const accountId = rows[0]?.id ?? 0;
    const actor = { by: 'nobody', sessionId: null, address: '192.0.2.1' } as const;
    const failures: unknown[] = [];
    const state = { away: true };
    const away = openTestDatabase('postgres://nobody@127.0.0.1:1/nothing');
    const db = {
      query: (text: string, values?: unknown[]) =>
        (state.away ? away : database.db).query(text, values),
    } as typeof database.db;
    const clock = () => t0 + 5;
    const onError = (error: unknown) => void failures.push(error);
    const log = startRefusalLog({ db, clock, intervalMs: 100_000, maxWaiting: 2, onError });
    log.note(accountId, 'login-refused', actor);
    await log.flush();
    expect(failures).toHaveLength(1);
    log.note(accountId, 'login-refused', actor);
    log.note(accountId, 'password-change-refused', actor);
    // More than may wait.
    log.note(accountId, 'login-while-disabled', actor);
    state.away = false;
    await log.close();
    const trail = await startAuditTrail(database.db);
    const entries = await trail.list(accountId);
    await trail.close();
    expect(entries.map(({ kind, count }) => `${kind} ${count}`).toSorted()).toEqual([
      'login-refused 2',
      'password-change-refused 1',
    ]);
    await away.close();
  });
});
