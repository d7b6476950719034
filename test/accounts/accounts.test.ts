import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type App, startApp } from './app.ts';

let app: App;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const password = 'correct horse';
const paths = (body: Record<string, unknown>) =>
  (body['errors'] as { path: string }[]).map(({ path }) => path);

describe('4.2 Register New Account', () => {
  test('answers 200 with timestamp, accountAuthUuid and a token that opens the account', async () => {
    const body = { email: 'Ada@Example.com', password };
    const answer = await app.call('POST', '/v2/accounts', { body });
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      timestamp: expect.any(Number),
      accountAuthUuid: expect.stringMatching(uuid),
      accountAuthToken: expect.any(String),
    });
    const account = await app.call('GET', '/v2/accounts', {
      token: String(answer.body['accountAuthToken']),
    });
    expect(account).toMatchObject({ status: 200, body: { email: 'Ada@Example.com', name: null } });
  });

  test('answers 409 for an address that is taken; case does not matter', async () => {
    await app.register('taken@example.com');
    const body = { email: 'TAKEN@example.COM', password };
    expect((await app.call('POST', '/v2/accounts', { body })).status).toBe(409);
  });

  test('accepts every address that RFC 5321 and 5322 allow, unquoted', async () => {
    const addresses = [
      "o'hara+x@example.org",
      'a&b@example.org',
      'user=tag@example.org',
      'x~y@example.org',
      'a/b@example.org',
      '#1@example.org',
      'ivan@xn--e1afmkfd.xn--p1ai',
      'li@xn--fiq228c.xn--fiqs8s',
      'root@localhost',
      `${'l'.repeat(64)}@example.org`,
    ];
    for (const email of addresses) {
      const answer = await app.call('POST', '/v2/accounts', { body: { email, password } });
      expect([email, answer.status]).toEqual([email, 200]);
    }
  });

  test.each([
    '.a@example.org',
    'a..b@example.org',
    'a.@example.org',
    'a b@example.org',
    'a@-example.org',
    'a@example..org',
    'a@b@example.org',
    '"a"@example.org',
    'a@example.org\r\nBcc: b@example.org',
    `${'l'.repeat(65)}@example.org`,
    `a@${'l'.repeat(64)}.org`,
  ])('does not accept %s', async (email) => {
    const answer = await app.call('POST', '/v2/accounts', { body: { email, password } });
    expect([answer.status, paths(answer.body)]).toEqual([400, ['/email']]);
  });

  test.each([
    ['no body', undefined, ['']],
    ['nothing in it', {}, ['/email', '/password']],
    ['no address', { email: 'ada', password }, ['/email']],
    ['an umlaut', { email: 'müller@example.com', password }, ['/email']],
    ['a letter that lowers to ASCII', { email: '\u212A@example.com', password }, ['/email']],
    ['a domain beyond ASCII', { email: 'ada@exämple.com', password }, ['/email']],
    ['a number for a password', { email: 'a@example.com', password: 12345678 }, ['/password']],
    ['7 characters', { email: 'a@example.com', password: '1234567' }, ['/password']],
    [
      '7 characters of 2 code units',
      { email: 'a@example.com', password: '😀'.repeat(7) },
      ['/password'],
    ],
    ['129 characters', { email: 'a@example.com', password: 'x'.repeat(129) }, ['/password']],
    ['an array', [], ['']],
  ])('answers 400 and lists all problems: %s', async (_name, body, expected) => {
    const answer = await app.call('POST', '/v2/accounts', { body });
    expect(answer.status).toBe(400);
    expect(paths(answer.body)).toEqual(expected);
  });

  test('accepts passwords of 8 and of 128 characters', async () => {
    for (const [name, secret] of Object.entries({ short: '😀'.repeat(8), long: 'x'.repeat(128) })) {
      const body = { email: `${name}@example.com`, password: secret };
      expect((await app.call('POST', '/v2/accounts', { body })).status).toBe(200);
      expect((await app.call('POST', '/v2/accounts/login', { body })).status).toBe(200);
    }
  });

  test('of parallel registrations with one address exactly one succeeds', async () => {
    const body = { email: 'race@example.com', password };
    const answers = await Promise.all(
      Array.from({ length: 8 }, () => app.call('POST', '/v2/accounts', { body })),
    );
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, ...Array(7).fill(409)]);
  });
});

describe('4.2 Update Account and Get Account', () => {
  test('stores name and apn, and leaves absent members unchanged', async () => {
    const { token } = await app.register('update@example.com');
    const put = (body: unknown) => app.call('PUT', '/v2/accounts', { token, body });
    const stored = async () =>
      (
        await app.db.query<{ name: string; apn: unknown }>(
          `select name, apn from account where email = 'update@example.com'`,
        )
      ).rows[0];
    const answer = await put({ name: 'Ada', apn: [{ token: 'phone', more: 1 }], unknown: true });
    expect(answer).toMatchObject({ status: 200, body: { timestamp: expect.any(Number) } });
    expect(await stored()).toEqual({ name: 'Ada', apn: [{ token: 'phone' }] });
    await put({ name: 'Grace' });
    expect(await stored()).toEqual({ name: 'Grace', apn: [{ token: 'phone' }] });
    await put({ name: 'Grace', apn: [] });
    expect(await stored()).toEqual({ name: 'Grace', apn: [] });
    expect((await app.call('GET', '/v2/accounts', { token })).body).toEqual({
      timestamp: expect.any(Number),
      email: 'update@example.com',
      name: 'Grace',
      timeZone: 'UTC',
      language: 'en',
    });
  });

  test('stores time zone and language, and leaves absent members unchanged', async () => {
    const { token } = await app.register('words@example.com');
    const put = (body: unknown) => app.call('PUT', '/v2/accounts', { token, body });
    await put({ timeZone: 'Europe/Berlin', language: 'de' });
    await put({ name: 'Grace' });
    expect((await app.call('GET', '/v2/accounts', { token })).body).toMatchObject({
      name: 'Grace',
      timeZone: 'Europe/Berlin',
      language: 'de',
    });
    for (const body of [
      { timeZone: 'Europe/Atlantis' },
      { timeZone: '+02:00' },
      { language: 'fr' },
    ])
      expect((await put(body)).status).toBe(400);
  });

  test('answers 400 for wrong types', async () => {
    const { token } = await app.register('types@example.com');
    const body = { name: 5, apn: [{ token: 'x' }, { token: 1 }, {}] };
    const answer = await app.call('PUT', '/v2/accounts', { token, body });
    expect(answer.status).toBe(400);
    expect(paths(answer.body)).toEqual(['/name', '/apn/1/token', '/apn/2/token']);
  });
});

describe('4.2 Delete Account', () => {
  test('removes everything that belongs to it, and ends its sessions', async () => {
    const { token, uuid: accountUuid } = await app.register('gone@example.com');
    const { rows } = await app.db.query<{ id: number }>('select id from account where uuid = $1', [
      accountUuid,
    ]);
    const answer = await app.call('DELETE', '/v2/accounts', { token });
    expect(answer).toMatchObject({
      status: 200,
      body: { timestamp: expect.any(Number), message: expect.any(String) },
    });
    expect(app.removedAccounts).toEqual([rows[0]?.id]);
    expect((await app.call('GET', '/v2/accounts', { token })).status).toBe(401);
    const body = { email: 'gone@example.com', password };
    expect((await app.call('POST', '/v2/accounts/login', { body })).status).toBe(401);
    expect((await app.call('POST', '/v2/accounts', { body })).status).toBe(200);
  });
});

describe('4.2 Get account events, section 6', () => {
  const get = (token: string, query = '') =>
    app.call('GET', `/v2/accounts/events${query}`, { token });

  test('records register, login and update, newest first', async () => {
    const { token, uuid: accountAuthUuid } = await app.register('events@example.com');
    app.time.offsetMs += 1;
    await app.call('POST', '/v2/accounts/login', {
      body: { email: 'events@example.com', password },
    });
    app.time.offsetMs += 1;
    await app.call('PUT', '/v2/accounts', { token, body: { name: 'x' } });
    const { body } = await get(token);
    const shape = { timestamp: expect.any(Number), type: 'account', accountAuthUuid };
    expect(body['events']).toEqual([
      { ...shape, event: 'update' },
      { ...shape, event: 'login' },
      { ...shape, event: 'register' },
    ]);
  });

  async function accountWithEvents(email: string, tss: number[]): Promise<string> {
    const { token, uuid: accountUuid } = await app.register(email);
    await app.db.query(`delete from account_event`);
    await app.db.query(
      `insert into account_event (account_id, ts, event)
       select account.id, ms_to_timestamp(t), 'update' from account, unnest($2::bigint[]) t
       where uuid = $1`,
      [accountUuid, tss],
    );
    return token;
  }
  const timestamps = (body: Record<string, unknown>) =>
    (body['events'] as { timestamp: number }[]).map(({ timestamp }) => timestamp);

  test('limit is 10 by default and at most; start and end are inclusive', async () => {
    const tss = Array.from({ length: 15 }, (_, i) => 1_000 + i);
    const token = await accountWithEvents('ranges@example.com', tss);
    expect(timestamps((await get(token)).body)).toEqual(tss.toReversed().slice(0, 10));
    expect(timestamps((await get(token, '?limit=1000')).body)).toHaveLength(10);
    expect(timestamps((await get(token, '?limit=3')).body)).toEqual([1_014, 1_013, 1_012]);
    expect(timestamps((await get(token, '?start=1002&end=1004')).body)).toEqual([
      1_004, 1_003, 1_002,
    ]);
    expect((await get(token, '?start=1010')).headers.get('link')).toBeNull();
  });

  test('pages by Link miss nothing and repeat nothing, even within one millisecond', async () => {
    const tss = [...Array<number>(13).fill(2_000), ...Array<number>(9).fill(1_999), 1, 0];
    const token = await accountWithEvents('pages@example.com', tss);
    const seen: number[] = [];
    let next: string | undefined = '/v2/accounts/events?limit=4&end=2000';
    let pages = 0;
    while (next !== undefined) {
      const answer = await app.call('GET', next, { token });
      seen.push(...timestamps(answer.body));
      next = /^<(.+)>; rel="next"$/.exec(answer.headers.get('link') ?? '')?.[1];
      pages += 1;
    }
    expect(seen).toEqual(tss);
    expect(pages).toBe(6);
  });

  test.each([
    'limit=0',
    'limit=-1',
    'limit=1.5',
    'limit=x',
    'limit=',
    'limit=1&limit=2',
    'start=-1',
    'start=x',
    'start=9999999999999999',
    'end=-5',
    'end=99999999999999999999',
    'cursor=zz',
    ...[
      { ts: 9e15, id: 1 },
      { ts: 1, id: 1e300 },
      { ts: -1, id: 1 },
    ].map(tampered),
    'start=%00',
  ])('answers 400 for %s', async (query) => {
    const { token } = await app.register(`query-${crypto.randomUUID()}@example.com`);
    const answer = await get(token, `?${query}`);
    expect(answer.status).toBe(400);
    expect(paths(answer.body)).toEqual([query.split('=', 1)[0]]);
  });
});

/** A well-formed cursor that no answer ever contained. */
function tampered(cursor: unknown): string {
  return `cursor=${Buffer.from(JSON.stringify(cursor)).toString('base64url')}`;
}
