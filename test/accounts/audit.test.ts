import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { AuditEntry } from '../../src/audit/audit.ts';
import { startApp } from './app.ts';
import { type Logins, pairOf, password, sessionStores, startLogins } from './logins.ts';

const address = '127.0.0.1';
const sidOf = (token: string) => String(decodeJwt(token)['sid']);

describe.each(sessionStores)('the audit trail, with sessions in the %s', (kind) => {
  let app: Logins;
  beforeAll(async () => {
    app = await startLogins(kind);
  });
  afterAll(() => app.close());

  async function entriesOf(token: string, query = '', from: Pick<Logins, 'call'> = app) {
    const answer = await from.call('GET', `/v2/accounts/audit${query}`, { token });
    expect(answer.status).toBe(200);
    return answer.body['entries'] as AuditEntry[];
  }
  const kindsOf = (entries: AuditEntry[]) => entries.map(({ kind }) => kind);
  const newest = async (token: string, kinds: string) =>
    (await entriesOf(token, `?kinds=${kinds}`))[0];

  test('records who registered, logged in and changed something, newest first', async () => {
    const { email, token } = await app.newAccount();
    const { token: second } = await app.logInV1(email);
    const settings = { name: 'Ada', apn: [{ token: 'a secret of the phone' }] };
    await app.call('PUT', '/v2/accounts', { token: second, body: settings });
    const entries = await entriesOf(token);
    const common = { auditId: expect.any(String), timestamp: expect.any(Number), address };
    const sessionId = sidOf(second);
    expect(entries).toEqual([
      {
        ...common,
        kind: 'settings-changed',
        by: 'session',
        sessionId,
        details: { changed: ['name', 'apn'] },
      },
      { ...common, kind: 'login', by: 'session', sessionId, details: { userAgent: 'node' } },
      { ...common, kind: 'registered', by: 'nobody', details: {} },
    ]);
    expect(JSON.stringify(entries)).not.toContain('a secret');
  });

  test('counts refused logins of one hour and address in one entry', async () => {
    const { email, token } = await app.newAccount();
    const logIn = (secret: string) =>
      app.call('POST', '/v2/accounts/login', { body: { email, password: secret } });
    for (let n = 0; n < 3; n += 1) expect((await logIn('wrong')).status).toBe(401);
    await app.refusals.flush();
    expect(await newest(token, 'login-refused')).toMatchObject({ by: 'nobody', address, count: 3 });
    app.time.offsetMs += 3_600_000;
    await logIn('wrong again');
    await app.refusals.flush();
    const entries = await entriesOf(token, '?kinds=login-refused');
    expect(entries.map(({ count }) => count)).toEqual([1, 3]);
    const [last] = entries;
    expect(last?.lastTs).toBe(last?.timestamp);
  });

  test('records the client address that a trusted proxy names, complete', async () => {
    const proxied = await startApp({
      redisUrl: app.redisUrl,
      database: app.database,
      http: { trustedProxies: ['127.0.0.1'] },
    });
    try {
      const { email, token } = await app.newAccount();
      const headers = { 'x-forwarded-for': '2001:db8::1:2:3:4' };
      await proxied.call('POST', '/v2/accounts/login', { headers, body: { email, password } });
      expect(await newest(token, 'login')).toMatchObject({ address: '2001:db8::1:2:3:4' });
    } finally {
      await proxied.close();
    }
  });

  test('records the end of a session, whoever ended it', async () => {
    const { email, token } = await app.newAccount();
    const { token: second } = await app.logInV1(email);
    const id = sidOf(second);
    const end = () => app.call('DELETE', `/v2/accounts/sessions/${id}`, { token });
    expect([(await end()).status, (await end()).status]).toEqual([200, 404]);
    expect(await entriesOf(token, '?kinds=session-ended')).toMatchObject([
      { by: 'session', sessionId: sidOf(token), details: { session: id, reason: 'asked' } },
    ]);
    const pair = await app.logInV1(email);
    const next = pairOf(await app.refresh(pair.token, pair.refreshToken));
    app.time.offsetMs += 11_000;
    expect((await app.refresh(pair.token, pair.refreshToken)).status).toBe(401);
    expect(await app.opens(next.token)).toBe(401);
    await expect
      .poll(() => newest(token, 'session-ended'))
      .toMatchObject({
        by: 'service',
        address,
        details: { session: sidOf(pair.token), reason: 'refresh-token-reused' },
      });
  });

  test('records the session that one login too many ended', async () => {
    const small = await startApp({ redisUrl: app.redisUrl, database: app.database, sessions: 1 });
    try {
      const { token: first } = await small.register(`one-${kind}@example.com`);
      const body = { email: `one-${kind}@example.com`, password };
      const login = await small.call('POST', '/v2/accounts/login', { body });
      const token = String(login.body['accountAuthToken']);
      const list = () => entriesOf(token, '?kinds=session-ended', small);
      await expect
        .poll(list)
        .toMatchObject([
          { by: 'service', details: { session: sidOf(first), reason: 'sessions-quota' } },
        ]);
    } finally {
      await small.close();
    }
  });

  test('records a changed password, and a failed attempt to change it', async () => {
    const { email, token } = await app.newAccount();
    const change = (oldPassword: string) =>
      app.call('PUT', '/v2/accounts/password', {
        token,
        body: { oldPassword, newPassword: 'battery staple' },
      });
    expect([(await change('wrong')).status, (await change(password)).status]).toEqual([403, 200]);
    await app.refusals.flush();
    const login = await app.call('POST', '/v2/accounts/login', {
      body: { email, password: 'battery staple' },
    });
    const entries = await entriesOf(
      String(login.body['accountAuthToken']),
      '?kinds=password-changed,password-change-refused',
    );
    const by = { by: 'session', sessionId: sidOf(token) };
    expect(kindsOf(entries).toSorted()).toEqual(['password-change-refused', 'password-changed']);
    expect(entries).toMatchObject([by, by]);
  });

  test('is read page by page, by range and by kind', async () => {
    const { token } = await app.newAccount();
    for (let n = 0; n < 5; n += 1)
      await app.call('PUT', '/v2/accounts', { token, body: { name: `name ${n}` } });
    const all = await entriesOf(token);
    expect(kindsOf(all)).toEqual([...Array<string>(5).fill('settings-changed'), 'registered']);
    const read: AuditEntry[] = [];
    let path: string | undefined = '/v2/accounts/audit?limit=2&kinds=settings-changed,registered';
    for (let pages = 0; path !== undefined; pages += 1) {
      expect(pages).toBeLessThan(4);
      const { body, headers } = await app.call('GET', path, { token });
      read.push(...(body['entries'] as AuditEntry[]));
      path = /^<(.*)>; rel="next"$/.exec(headers.get('link') ?? '')?.[1];
    }
    expect(read).toEqual(all);
    const [from, to] = [all[3]?.timestamp ?? 0, all[1]?.timestamp ?? 0];
    const between = all.filter(({ timestamp }) => timestamp >= from && timestamp <= to);
    expect(await entriesOf(token, `?start=${from}&end=${to}`)).toEqual(between);
    for (const query of ['kinds=login,nothing', 'limit=0', 'start=x', 'cursor=e30']) {
      const { status } = await app.call('GET', `/v2/accounts/audit?${query}`, { token });
      expect([query, status]).toEqual([query, 400]);
    }
  });

  test('belongs to its account alone, and is deleted with it', async () => {
    const [mine, theirs] = [await app.newAccount(), await app.newAccount()];
    expect(await entriesOf(mine.token)).toHaveLength(1);
    const count = async () => {
      const { rows } = await app.db.query<{ count: number }>(
        `select count(*) from account_audit a join account on account.id = a.account_id
          where email = $1`,
        [theirs.email],
      );
      const { rows: all } = await app.db.query<{ count: number }>(
        'select count(*) from account_audit',
      );
      return [rows[0]?.count ?? 0, all[0]?.count ?? 0];
    };
    const [own, before = 0] = await count();
    expect(own).toBe(1);
    await app.call('DELETE', '/v2/accounts', { token: theirs.token });
    expect(await count()).toEqual([0, before - 1]);
  });
});
