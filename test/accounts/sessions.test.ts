import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startApp } from './app.ts';
import { type Logins, pairOf, password, sessionStores, startLogins } from './logins.ts';

describe.each(sessionStores)('section 5: sessions in the %s', (kind) => {
  let app: Logins;
  beforeAll(async () => {
    app = await startLogins(kind);
  });
  afterAll(() => app.close());

  test('are listed and ended one by one', async () => {
    const { email, token } = await app.newAccount();
    const { token: second } = await app.logInV1(email);
    const list = async () =>
      (await app.call('GET', '/v2/accounts/sessions', { token })).body['sessions'] as {
        id: string;
        kind: string;
        current: boolean;
        address?: string;
        userAgent?: string;
      }[];
    const entries = await list();
    // Registering begins a session too, but it is not a login.
    expect(entries.map(({ current, address, userAgent }) => [current, address, userAgent])).toEqual(
      expect.arrayContaining([
        [true, undefined, undefined],
        [false, '127.0.0.1', 'node'],
      ]),
    );
    expect(entries.map(({ kind, current }) => [kind, current]).toSorted()).toEqual([
      ['account', true],
      ['pair', false],
    ]);
    const other = entries.find(({ current }) => !current)?.id ?? '';
    const remove = () => app.call('DELETE', `/v2/accounts/sessions/${other}`, { token });
    expect((await remove()).status).toBe(200);
    expect(await app.opens(second)).toBe(401);
    expect(await list()).toHaveLength(1);
    expect((await remove()).status).toBe(404);
    expect((await app.call('DELETE', '/v2/accounts/sessions/x', { token })).status).toBe(404);
  });

  test('of another account are answered like ones that do not exist', async () => {
    const mine = await app.newAccount();
    const { token } = await app.newAccount();
    const sid = String(decodeJwt(mine.token)['sid']);
    const answer = await app.call('DELETE', `/v2/accounts/sessions/${sid}`, { token });
    expect(answer.status).toBe(404);
    expect(await app.opens(mine.token)).toBe(200);
  });

  test('end all at once when the password changes', async () => {
    const { email, token } = await app.newAccount();
    const { token: second } = await app.logInV1(email);
    const change = (oldPassword: string, newPassword: string) =>
      app.call('PUT', '/v2/accounts/password', { token, body: { oldPassword, newPassword } });
    expect((await change('not it at all', 'battery staple')).status).toBe(403);
    expect((await change(password, 'short')).status).toBe(400);
    expect(await app.opens(token)).toBe(200);
    expect((await change(password, 'battery staple')).status).toBe(200);
    expect([await app.opens(token), await app.opens(second)]).toEqual([401, 401]);
    const logIn = (secret: string) =>
      app.call('POST', '/v2/accounts/login', { body: { email, password: secret } });
    expect((await logIn(password)).status).toBe(401);
    expect((await logIn('battery staple')).status).toBe(200);
  });

  test('a login that races with a password change leaves no session behind', async () => {
    const { email, token } = await app.newAccount();
    const logins = Array.from({ length: 10 }, () =>
      app.call('POST', '/v2/accounts/login', { body: { email, password } }),
    );
    const body = { oldPassword: password, newPassword: 'battery staple' };
    const change = await app.call('PUT', '/v2/accounts/password', { token, body });
    expect(change.status).toBe(200);
    const statuses = await Promise.all(
      (await Promise.all(logins)).map((login) => app.opens(String(login.body['accountAuthToken']))),
    );
    expect(statuses).toEqual(Array(10).fill(401));
  });

  test('are at most 50: a login never used ends first, and streams are notified', async () => {
    const small = await startApp({ redisUrl: app.redisUrl, database: app.database, sessions: 3 });
    try {
      const email = `capped-${kind}@example.com`;
      const { token: used } = await small.register(email);
      const opens = async (token: string) =>
        (await small.call('GET', '/v2/accounts', { token })).status;
      expect(await opens(used)).toBe(200);
      const logIn = async () => {
        const answer = await small.call('POST', '/v2/accounts/login', {
          body: { email, password },
        });
        return String(answer.body['accountAuthToken']);
      };
      small.time.offsetMs += 5;
      const unused = await logIn();
      small.time.offsetMs += 5;
      const second = await logIn();
      expect(await opens(second)).toBe(200);
      small.revoked.length = 0;
      const third = await logIn();
      expect(small.revoked).toEqual([
        { accountId: expect.any(Number), sessionId: decodeJwt(unused)['sid'] },
      ]);
      expect([await opens(used), await opens(unused)]).toEqual([200, 401]);
      expect([await opens(second), await opens(third)]).toEqual([200, 200]);
      // All were used: now the least recently used one ends.
      await logIn();
      expect([await opens(used), await opens(second), await opens(third)]).toEqual([401, 200, 200]);
    } finally {
      await small.close();
    }
  });

  test('a revocation is reported to streams', async () => {
    const { token } = await app.newAccount();
    app.revoked.length = 0;
    const sessionId = String(decodeJwt(token)['sid']);
    await app.call('DELETE', `/v2/accounts/sessions/${sessionId}`, { token });
    expect(app.revoked).toEqual([{ accountId: expect.any(Number), sessionId }]);
  });

  test('a token ended on one process is not accepted on another', async () => {
    const { token } = await app.newAccount();
    const second = await startApp({ redisUrl: app.redisUrl, database: app.database });
    try {
      expect((await second.call('GET', '/v2/accounts', { token })).status).toBe(200);
      const sid = String(decodeJwt(token)['sid']);
      await app.call('DELETE', `/v2/accounts/sessions/${sid}`, { token });
      expect((await second.call('GET', '/v2/accounts', { token })).status).toBe(401);
    } finally {
      await second.close();
    }
  });
});

describe.each(sessionStores)('sessions from a clock that ran ahead, in the %s', (kind) => {
  const dayMs = 86_400_000;
  let app: Logins;
  beforeAll(async () => {
    app = await startLogins(kind);
  });
  afterAll(() => app.close());

  test('are not accepted once the clock is right, and take no place from earlier ones', async () => {
    const { email, token: before } = await app.newAccount();
    app.time.offsetMs = 300 * dayMs;
    const { token: pair } = await app.logInV1(email);
    const login = { email, password };
    const ahead = await app.call('POST', '/v2/accounts/login', { body: login });
    const sliding = String(ahead.body['accountAuthToken']);
    expect([await app.opens(pair), await app.opens(sliding)]).toEqual([200, 200]);
    app.time.offsetMs = 0;
    expect([await app.opens(pair), await app.opens(sliding)]).toEqual([401, 401]);
    expect(await app.opens(before)).toBe(200);
    // While it is unclear which clock is right, both count.
    app.time.doubtSpanMs = 300 * dayMs;
    expect([await app.opens(pair), await app.opens(sliding)]).toEqual([200, 200]);
    app.time.doubtSpanMs = 0;
  });

  test('a session used in between ends when it would have ended anyway', async () => {
    const { token } = await app.newAccount();
    app.time.offsetMs = 20 * dayMs;
    expect(await app.opens(token)).toBe(200);
    app.time.offsetMs = 0;
    expect(await app.opens(token)).toBe(200);
    const list = await app.call('GET', '/v2/accounts/sessions', { token });
    const [session] = list.body['sessions'] as { expiresTs: number; lastUsedTs: number }[];
    expect(session?.lastUsedTs).toBeLessThan(Date.now() + dayMs);
  });

  test('a pair with an access token from then can be refreshed', async () => {
    const { email } = await app.newAccount();
    const first = await app.logInV1(email);
    app.time.offsetMs = 20 * dayMs;
    const then = pairOf(await app.refresh(first.token, first.refreshToken));
    app.time.offsetMs = 0;
    expect(await app.opens(then.token)).toBe(401);
    const now = pairOf(await app.refresh(then.token, then.refreshToken));
    expect(await app.opens(now.token)).toBe(200);
  });
});
