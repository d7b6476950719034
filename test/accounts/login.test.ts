import { hash } from '@node-rs/argon2';
import { decodeJwt } from 'jose';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startApp } from './app.ts';
import { type Logins, pairOf, password, sessionStores, startLogins } from './logins.ts';

const minuteMs = 60_000;
const dayMs = 24 * 60 * minuteMs;

describe('a password typed on different machines', () => {
  let app: Logins;
  beforeAll(async () => {
    app = await startLogins('database');
  });
  afterAll(() => app.close());

  const composed = 'Grüße aus Köln é'.normalize('NFC');
  const decomposed = composed.normalize('NFD');
  const other = 'Gräöe aus Käln é'.normalize('NFD');
  const logIn = async (email: string, typed: string) =>
    (await app.call('POST', '/v2/accounts/login', { body: { email, password: typed } })).status;
  const hashOf = async (email: string) => {
    const { rows } = await app.db.query<{ hash: string }>(
      'select password_hash as hash from account where email = $1',
      [email],
    );
    return rows[0]?.hash ?? '';
  };

  test.each([
    ['composed', composed],
    ['decomposed', decomposed],
  ])('is the same however its letters are composed: registered %s', async (form, registered) => {
    const email = `${form}@example.org`;
    const body = { email, password: registered };
    expect((await app.call('POST', '/v2/accounts', { body })).status).toBe(200);
    expect(await logIn(email, composed)).toBe(200);
    expect(await logIn(email, decomposed)).toBe(200);
    expect(await logIn(email, other)).toBe(401);
  });

  test('from an earlier version is accepted as it was typed, and after that in both forms', async () => {
    const { email } = await app.newAccount();
    const old = await hash(decomposed);
    await app.db.query('update account set password_hash = $2 where email = $1', [email, old]);
    expect(await logIn(email, composed)).toBe(401);
    expect(await logIn(email, other)).toBe(401);
    expect(await hashOf(email)).toBe(old);
    expect(await logIn(email, decomposed)).toBe(200);
    expect(await hashOf(email)).not.toBe(old);
    expect(await logIn(email, composed)).toBe(200);
    expect(await logIn(email, decomposed)).toBe(200);
  });
});

describe.each(sessionStores)('sessions in the %s', (kind) => {
  let app: Logins;
  beforeAll(async () => {
    app = await startLogins(kind);
  });
  afterAll(() => app.close());

  describe('4.1 POST /v1/auth/login', () => {
    test('5.1 gives an access token of 15 minutes and a refresh token', async () => {
      const { email } = await app.newAccount();
      const answer = await app.call('POST', '/v1/auth/login', { body: { email, password } });
      expect(answer).toMatchObject({
        status: 200,
        body: { data: { token: expect.any(String), refreshToken: expect.any(String) } },
      });
      const { token } = pairOf(answer);
      const { exp = 0, iat = 0 } = decodeJwt(token);
      expect(exp - iat).toBe(15 * 60);
      expect(await app.opens(token)).toBe(200);
    });

    test('5.1 the access token expires after 15 minutes', async () => {
      const { email } = await app.newAccount();
      const { token } = await app.logInV1(email);
      app.time.offsetMs += 15 * minuteMs + 1_000;
      expect(await app.opens(token)).toBe(401);
    });
  });

  describe('4.1 POST /v1/auth/refresh', () => {
    test('5.1 step 4 gives a new pair, even for an expired access token', async () => {
      const { email } = await app.newAccount();
      const first = await app.logInV1(email);
      app.time.offsetMs += 20 * minuteMs;
      const answer = await app.refresh(first.token, first.refreshToken);
      expect(answer.status).toBe(200);
      const second = pairOf(answer);
      expect(second.refreshToken).not.toBe(first.refreshToken);
      expect(await app.opens(second.token)).toBe(200);
      expect((await app.refresh(second.token, second.refreshToken)).status).toBe(200);
    });

    test('a refresh token used twice returns the same pair for 10 s, and after that ends its session', async () => {
      const { email } = await app.newAccount();
      const other = await app.logInV1(email);
      const first = await app.logInV1(email);
      const second = pairOf(await app.refresh(first.token, first.refreshToken));
      for (const ms of [0, 3_000, 3_000]) {
        app.time.offsetMs += ms;
        expect(pairOf(await app.refresh(first.token, first.refreshToken))).toEqual(second);
      }
      app.time.offsetMs += 4_000;
      expect((await app.refresh(first.token, first.refreshToken)).status).toBe(401);
      expect(await app.opens(second.token)).toBe(401);
      expect((await app.refresh(second.token, second.refreshToken)).status).toBe(401);
      expect(await app.opens(other.token)).toBe(200);
      app.time.offsetMs = 0;
    });

    test('of 50 parallel uses all get one pair, which is accepted and can be refreshed', async () => {
      const { email } = await app.newAccount();
      const { token, refreshToken } = await app.logInV1(email);
      const answers = await Promise.all(
        Array.from({ length: 50 }, () => app.refresh(token, refreshToken)),
      );
      const pairs = answers.map(pairOf);
      const pair = pairs[0] as (typeof pairs)[number];
      expect(pairs).toEqual(Array(50).fill(pair));
      expect(pair.refreshToken).not.toBe(refreshToken);
      expect(await app.opens(pair.token)).toBe(200);
      expect((await app.refresh(pair.token, pair.refreshToken)).status).toBe(200);
    });

    test('what is stored for a second use is useless by itself', async () => {
      const { email } = await app.newAccount();
      const first = await app.logInV1(email);
      const second = pairOf(await app.refresh(first.token, first.refreshToken));
      const kept = await app.keptSuccessors();
      expect(kept).not.toHaveLength(0);
      for (const text of kept) {
        expect(text).not.toContain(second.token);
        expect(Buffer.from(text, 'base64url').toString()).not.toContain('refreshToken');
      }
    });

    test('each access token differs from the previous one, even within one second', async () => {
      const { email } = await app.newAccount();
      const first = await app.logInV1(email);
      const second = pairOf(await app.refresh(first.token, first.refreshToken));
      expect(second.token).not.toBe(first.token);
      expect(decodeJwt(second.token).jti).not.toBe(decodeJwt(first.token).jti);
    });

    test('5.1 requires both: without a bearer, with an invented token or with that of another session it is 401', async () => {
      const { email } = await app.newAccount();
      const { token, refreshToken } = await app.logInV1(email);
      const other = await app.logInV1(email);
      expect((await app.refresh(undefined, refreshToken)).status).toBe(401);
      expect((await app.refresh(token, 'made up')).status).toBe(401);
      expect((await app.refresh(token, `${refreshToken}x`)).status).toBe(401);
      expect((await app.refresh(token, other.refreshToken)).status).toBe(401);
      expect((await app.refresh(token, 5)).status).toBe(400);
      // None of this was a second use: the session still exists.
      expect((await app.refresh(token, refreshToken)).status).toBe(200);
    });

    test('the refresh token expires after 30 days', async () => {
      const { email } = await app.newAccount();
      const { token, refreshToken } = await app.logInV1(email);
      app.time.offsetMs += 30 * dayMs + minuteMs;
      expect((await app.refresh(token, refreshToken)).status).toBe(401);
      app.time.offsetMs = 0;
    });
  });

  describe('4.2 Authenticate Account', () => {
    test('answers 200 with timestamp, accountAuthUuid and accountAuthToken', async () => {
      const { email, uuid } = await app.newAccount();
      const body = { email: email.toUpperCase(), password };
      const answer = await app.call('POST', '/v2/accounts/login', { body });
      expect(answer).toMatchObject({
        status: 200,
        body: { timestamp: expect.any(Number), accountAuthUuid: uuid },
      });
      expect(await app.opens(String(answer.body['accountAuthToken']))).toBe(200);
    });

    test('the token slides: 30 days from its last use, at most a year', async () => {
      const { token: idle } = await app.newAccount();
      const { token } = await app.newAccount();
      for (let day = 0; day < 360; day += 20) {
        expect(await app.opens(token)).toBe(200);
        app.time.offsetMs += 20 * dayMs;
      }
      expect(await app.opens(token)).toBe(200);
      expect(await app.opens(idle)).toBe(401);
      app.time.offsetMs += 6 * dayMs;
      expect(await app.opens(token)).toBe(401);
      app.time.offsetMs = 0;
    });

    test('answers 401 in the same words for a wrong password and an unknown address', async () => {
      const { email } = await app.newAccount();
      const tryIt = (credentials: object) =>
        app.call('POST', '/v2/accounts/login', { body: credentials });
      const wrong = await tryIt({ email, password: 'wrong password' });
      const unknown = await tryIt({ email: `nobody-${email}`, password });
      expect(wrong.status).toBe(401);
      const { requestId: _a, timestamp: _b, ...said } = wrong.body;
      expect(unknown).toMatchObject({ status: 401, body: said });
      expect(Object.keys(unknown.body)).toEqual(Object.keys(wrong.body));
    });
  });

  test.each(['', 'x', 'a.b.c', 'eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.'])(
    'section 7: 401 with WWW-Authenticate for the token "%s"',
    async (token) => {
      const answer = await app.call('GET', '/v2/accounts', { token });
      expect(answer.status).toBe(401);
      expect(answer.headers.get('www-authenticate')).toBe('Bearer');
    },
  );
});

describe('4.2 with registration closed', () => {
  test('Register New Account answers 403', async () => {
    const app = await startApp({ openRegistration: false });
    try {
      const body = { email: 'ada@example.com', password };
      expect((await app.call('POST', '/v2/accounts', { body })).status).toBe(403);
    } finally {
      await app.close();
    }
  });
});
