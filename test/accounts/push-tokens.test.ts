import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { forgetTokensOfEnded } from '../../src/accounts/push-tokens.ts';
import { findSenders } from '../../src/notifications/recipients.ts';
import { password, sessionStores, startLogins, type Logins } from './logins.ts';

const path = '/v2/accounts/push-tokens';

type Entry = {
  tokenId: string;
  token: string;
  name?: string;
  sessionId?: string;
  current: boolean;
  addedTs?: number;
};

describe.each(sessionStores)('push tokens, with sessions in the %s', (kind) => {
  let app: Logins;
  beforeAll(async () => {
    app = await startLogins(kind);
  });
  afterAll(() => app.close());

  const add = (token: string, pushToken: string, more: object = {}) =>
    app.call('POST', path, { token, body: { token: pushToken, ...more } });
  const list = async (token: string) =>
    (await app.call('GET', path, { token })).body['pushTokens'] as Entry[];
  /** The recipients of a message. */
  const recipients = async (email: string): Promise<string[]> => {
    const { rows } = await app.db.query<{ id: number }>('select id from account where email = $1', [
      email,
    ]);
    const accountId = rows[0]?.id ?? 0;
    return (await findSenders(app.db, [accountId], Date.now())).get(accountId)?.tokens ?? [];
  };
  const putApn = (token: string, tokens: string[]) =>
    app.call('PUT', '/v2/accounts', {
      token,
      body: { apn: tokens.map((one) => ({ token: one })) },
    });
  const sessionIdOf = async (token: string) => {
    const { body } = await app.call('GET', '/v2/accounts/sessions', { token });
    const sessions = body['sessions'] as { id: string; current: boolean; pushTokens: number }[];
    return { sessions, own: sessions.find(({ current }) => current)?.id ?? '' };
  };
  const twoPhones = async () => {
    const { email, token: one } = await app.newAccount();
    const { token: two } = await app.logInV1(email);
    await add(one, 'token-of-one', { name: 'Telephone 1' });
    await add(two, 'token-of-two');
    return { email, one, two };
  };

  test("two telephones add their tokens, and neither replaces the other's", async () => {
    const { email, one, two } = await twoPhones();
    expect((await recipients(email)).toSorted()).toEqual(['token-of-one', 'token-of-two']);
    const { own, sessions } = await sessionIdOf(one);
    expect(await list(one)).toEqual(
      expect.arrayContaining([
        {
          tokenId: expect.any(String),
          token: '…-one',
          name: 'Telephone 1',
          sessionId: own,
          current: true,
          addedTs: expect.any(Number),
        },
        expect.objectContaining({ token: '…-two', current: false }),
      ]),
    );
    expect(JSON.stringify(await list(two))).not.toContain('token-of-one');
    expect(sessions.map(({ pushTokens }) => pushTokens)).toEqual([1, 1]);
  });

  test('adding one again records nothing, and moves it to the session that adds it', async () => {
    const { email, token } = await app.newAccount();
    const first = await add(token, 'token-again', { name: 'mine' });
    expect(await add(token, 'token-again')).toMatchObject({
      body: { tokenId: first.body['tokenId'] },
    });
    const entries = async () =>
      (await app.call('GET', '/v2/accounts/audit?kinds=push-token-added', { token })).body[
        'entries'
      ];
    expect(await entries()).toMatchObject([{ by: 'session', details: { name: 'mine' } }]);
    const { token: second } = await app.logInV1(email);
    await add(second, 'token-again');
    expect(await list(second)).toMatchObject([{ name: 'mine', current: true }]);
    expect(await entries()).toHaveLength(2);
    await app.call('DELETE', `/v2/accounts/sessions/${(await sessionIdOf(token)).own}`, {
      token: second,
    });
    expect(await recipients(email)).toEqual(['token-again']);
  });

  test('it is removed when its session is ended', async () => {
    const { email, one, two } = await twoPhones();
    const { own } = await sessionIdOf(one);
    await app.call('DELETE', `/v2/accounts/sessions/${own}`, { token: two });
    expect(await recipients(email)).toEqual(['token-of-two']);
    expect(await list(two)).toMatchObject([{ token: '…-two' }]);
  });

  test('all are removed when the password changes', async () => {
    const { email, one } = await twoPhones();
    await app.call('PUT', '/v2/accounts/password', {
      token: one,
      body: { oldPassword: password, newPassword: 'battery staple' },
    });
    expect(await recipients(email)).toEqual([]);
  });

  test('using a refresh token again ends the session, and removes its token', async () => {
    const { email } = await app.newAccount();
    const pair = await app.logInV1(email);
    await add(pair.token, 'token-of-a-thief');
    expect((await app.refresh(pair.token, pair.refreshToken)).status).toBe(200);
    expect(await recipients(email)).toEqual(['token-of-a-thief']);
    app.time.offsetMs += 20_000;
    expect((await app.refresh(pair.token, pair.refreshToken)).status).toBe(401);
    app.time.offsetMs -= 20_000;
    expect(await recipients(email)).toEqual([]);
  });

  test('those of an expired session are removed, those of a live one are not', async () => {
    const { email, token } = await app.newAccount();
    await add(token, 'token-that-stays');
    const isLive = async (sessionId: string) => {
      const { rows } = await app.db.query<{ accountId: number }>(
        'select account_id as "accountId" from push_token where session_id = $1',
        [sessionId],
      );
      return app.sessions.find(rows[0]?.accountId ?? 0, sessionId).then(
        () => true,
        () => false,
      );
    };
    const forget = () => forgetTokensOfEnded(app.db, isLive, AbortSignal.timeout(60_000));
    await forget();
    expect(await recipients(email)).toEqual(['token-that-stays']);
    app.time.offsetMs += 31 * 86_400_000;
    await forget();
    app.time.offsetMs -= 31 * 86_400_000;
    expect(await recipients(email)).toEqual([]);
  });

  test('while the session store is unreachable nothing is deleted', async () => {
    const { email, token } = await app.newAccount();
    await add(token, 'token-kept');
    const isAway = () => Promise.reject(new Error('away'));
    await expect(forgetTokensOfEnded(app.db, isAway, AbortSignal.timeout(60_000))).rejects.toThrow(
      'away',
    );
    expect(await recipients(email)).toEqual(['token-kept']);
  });

  test('Update Account replaces those in `apn`, never these; each gets a message once', async () => {
    const { email, token } = await app.newAccount();
    await add(token, 'token-of-session');
    await putApn(token, ['token-put', 'token-of-session']);
    expect(await recipients(email)).toEqual(['token-put', 'token-of-session']);
    expect(await list(token)).toMatchObject([
      { token: '…sion', current: true },
      { token: '…-put', current: false },
    ]);
    await putApn(token, []);
    expect(await recipients(email)).toEqual(['token-of-session']);
  });

  test('one in `apn` that a session adds belongs to that session, and is removed with it', async () => {
    const { email, token } = await app.newAccount();
    await putApn(token, ['token-other', 'token-moves']);
    await add(token, 'token-moves');
    await app.call('DELETE', `/v2/accounts/sessions/${(await sessionIdOf(token)).own}`, { token });
    expect(await recipients(email)).toEqual(['token-other']);
  });

  test('each can be removed, and all at once, wherever they are stored', async () => {
    const { email, one } = await twoPhones();
    await putApn(one, ['token-put', 'token-set']);
    const idOf = async (ending: string) =>
      (await list(one)).find(({ token }) => token === ending)?.tokenId ?? '';
    for (const ending of ['…-put', '…-two'])
      expect(
        (await app.call('DELETE', `${path}/${await idOf(ending)}`, { token: one })).status,
      ).toBe(200);
    expect(await recipients(email)).toEqual(['token-set', 'token-of-one']);
    const { token: stranger } = await app.newAccount();
    const foreign = `${path}/${await idOf('…-one')}`;
    expect((await app.call('DELETE', foreign, { token: stranger })).status).toBe(404);
    expect((await app.call('DELETE', path, { token: one })).status).toBe(200);
    expect(await recipients(email)).toEqual([]);
    expect((await app.call('DELETE', foreign, { token: one })).status).toBe(404);
    const { body } = await app.call('GET', '/v2/accounts/audit?kinds=push-token-removed', {
      token: one,
    });
    expect(body['entries']).toMatchObject([{ details: { tokens: 2 } }, {}, {}]);
  });

  test('there is a quota, which adding a known token does not use', async () => {
    const { token } = await app.newAccount();
    const answers = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((one) => add(token, one)));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 200, 200, 403, 403]);
    expect(answers.find(({ status }) => status === 403)?.body).toMatchObject({
      quota: 'pushTokens',
      limit: 3,
      used: 3,
    });
    const { body } = await app.call('GET', path, { token });
    expect(body['pushTokens']).toHaveLength(3);
    const [first] = answers.flatMap(({ status }, place) => (status === 200 ? 'abcde'[place] : []));
    expect((await add(token, first ?? '')).status).toBe(200);
  });

  test('an invalid one is refused, and an unknown member is named', async () => {
    const { token } = await app.newAccount();
    expect((await add(token, '')).status).toBe(400);
    expect((await add(token, 'x'.repeat(513))).status).toBe(400);
    expect(await add(token, 'fine', { label: 'phone' })).toMatchObject({
      status: 200,
      body: { warnings: [{ path: '/label' }] },
    });
  });
});
