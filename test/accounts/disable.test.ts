import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import {
  disableAccount,
  enableAccount,
  startDisabledAccounts,
} from '../../src/accounts/disabled.ts';
import { openTestDatabase } from '../support/database.ts';
import { type Logins, password, sessionStores, startLogins } from './logins.ts';

describe.each(sessionStores)('a disabled account, with sessions in the %s', (kind) => {
  let app: Logins;
  beforeAll(async () => {
    app = await startLogins(kind);
  });
  afterAll(() => app.close());

  const idOf = async (email: string) => {
    const { rows } = await app.db.query<{ id: number }>('select id from account where email = $1', [
      email,
    ]);
    return rows[0]?.id ?? 0;
  };
  const disable = async (email: string) => {
    const deps = { db: app.db, revokeSessions: app.sessions.revokeAll };
    return disableAccount(deps, await idOf(email), Date.now());
  };
  const enable = async (email: string) => enableAccount(app, await idOf(email), Date.now());
  const logIn = (email: string, secret = password, version = 'v2/accounts') =>
    app.call('POST', `/${version}/login`, { body: { email, password: secret } });

  test('has no session left, and gets none; a login with the right password hears why', async () => {
    const { email, token } = await app.newAccount();
    const pair = await app.logInV1(email);
    expect([await disable(email), await disable(email)]).toEqual([true, false]);
    expect([await app.opens(token), await app.opens(pair.token)]).toEqual([401, 401]);
    expect((await app.refresh(pair.token, pair.refreshToken)).status).toBe(401);
    for (const version of ['v1/auth', 'v2/accounts']) {
      const refused = await logIn(email, password, version);
      expect(refused.status).toBe(403);
      expect(refused.body).toMatchObject({ type: 'urn:sensorium:error:account-disabled' });
    }
    const [wrong, unknown] = [await logIn(email, 'wrong'), await logIn('nobody@example.com')];
    const comparable = ({ status, body }: typeof wrong) => {
      const { timestamp: _t, requestId: _r, ...said } = body;
      return { status, said };
    };
    expect(wrong.status).toBe(401);
    expect(comparable(wrong)).toEqual(comparable(unknown));
    expect((await app.call('POST', '/v2/accounts', { body: { email, password } })).status).toBe(
      409,
    );
  });

  test('logs in again once it is enabled, and can read what happened', async () => {
    const { email, token } = await app.newAccount();
    await disable(email);
    await logIn(email);
    await app.refusals.flush();
    expect([await enable(email), await enable(email)]).toEqual([true, false]);
    expect(await app.opens(token)).toBe(401);
    const login = await logIn(email);
    expect(login.status).toBe(200);
    const again = String(login.body['accountAuthToken']);
    await expect.poll(() => app.opens(again)).toBe(200);
    const { body } = await app.call('GET', '/v2/accounts/audit', { token: again });
    const entries = body['entries'] as { kind: string; by: string }[];
    expect(entries.map(({ kind, by }) => `${kind} by ${by}`).toSorted()).toEqual([
      'disabled by operator',
      'enabled by operator',
      'login by session',
      'login-while-disabled by nobody',
      'registered by nobody',
    ]);
  });

  test('gets no session from a login that was under way', async () => {
    const { email } = await app.newAccount();
    const logins = Array.from({ length: 10 }, () => logIn(email));
    await disable(email);
    const statuses = await Promise.all(
      (await Promise.all(logins)).map((login) => app.opens(String(login.body['accountAuthToken']))),
    );
    expect(statuses).toEqual(Array(10).fill(401));
    expect(await app.sessions.list(await idOf(email))).toEqual([]);
  });

  test('is not let in by a session that the store restores', async () => {
    const { email, uuid } = await app.newAccount();
    await disable(email);
    const accountId = await idOf(email);
    await expect.poll(() => app.disabled.has(accountId)).toBe(true);
    const restored = await app.sessions.startAccountSession({ accountId, accountUuid: uuid });
    expect(await app.opens(restored.token)).toBe(401);
    await enable(email);
    await expect.poll(() => app.opens(restored.token)).toBe(200);
  });

  test('stays enabled if its sessions cannot be ended', async () => {
    const { email, token } = await app.newAccount();
    const accountId = await idOf(email);
    const revokeSessions = () => Promise.reject(new Error('the store is away'));
    const deps = { db: app.db, revokeSessions };
    await expect(disableAccount(deps, accountId, Date.now())).rejects.toThrow('away');
    expect(await app.opens(token)).toBe(200);
    expect((await logIn(email)).status).toBe(200);
  });
});

describe('what a process knows of disabled accounts', () => {
  test('announces each once, and keeps them while the database is unreachable', async () => {
    const app = await startLogins('database');
    const away = openTestDatabase('postgres://nobody@127.0.0.1:1/nothing');
    const state = { away: false };
    const db = {
      query: (query: string, values?: unknown[]) =>
        (state.away ? away : app.db).query(query, values),
    } as typeof app.db;
    const failures: unknown[] = [];
    const told: number[] = [];
    const onError = (error: unknown) => void failures.push(error);
    const known = await startDisabledAccounts({ db, intervalMs: 10, onError });
    known.onDisabled((accountId) => void told.push(accountId));
    const set = async (disabled: boolean) => {
      const { rows } = await app.db.query<{ id: number }>(
        `update account set disabled_at = case when $1 then now() end returning id`,
        [disabled],
      );
      return rows[0]?.id ?? 0;
    };
    await app.newAccount();
    const accountId = await set(true);
    await expect.poll(() => told).toEqual([accountId]);
    state.away = true;
    await expect.poll(() => failures.length).toBe(1);
    expect(known.has(accountId)).toBe(true);
    await set(false);
    state.away = false;
    await expect.poll(() => known.has(accountId)).toBe(false);
    await set(true);
    await expect.poll(() => told).toEqual([accountId, accountId]);
    expect(failures).toHaveLength(1);
    await known.close();
    await away.close();
    await app.close();
  });
});
