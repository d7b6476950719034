import { pino } from 'pino';
import { expect, it } from 'vitest';
import { createLinkMailLimit } from '../../src/accounts/login-limits.ts';
import { makeResetToken } from '../../src/accounts/mailer.ts';
import { deriveKeys } from '../../src/config/keys.ts';
import type { Config } from '../../src/config/config.ts';
import { testService } from '../journeys/service.ts';
import { openTestDatabase } from '../support/database.ts';
import { startMailServer } from '../support/smtp.ts';
import { call, startApp } from './app.ts';

const password = 'correct horse';
const pollOften = (config: Config): Config => ({
  ...config,
  notifications: { ...config.notifications, pollIntervalMs: 50 },
});

it('without a mail server both say so', async () => {
  const service = await testService();
  try {
    const account = { email: 'alone@example.org', password };
    const registered = await call(service.url, 'POST', '/v2/accounts', { body: account });
    const token = String(registered.body['accountAuthToken']);
    for (const [method, path, body] of [
      ['POST', '/v2/accounts/password/forgotten', { email: account.email }],
      ['PUT', '/v2/accounts/email', { password, email: 'new@example.org' }],
    ] as const) {
      const answer = await call(service.url, method, path, { token, body });
      expect(answer.status).toBe(503);
      expect(answer.body['detail']).toMatch(/SMTP_URL.*account -- reset-link/);
    }
  } finally {
    await service.close();
  }
});

it('a mail server that is down is a line in the log without a stack, and one with the count', async () => {
  const lines: Record<string, unknown>[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line) as Record<string, unknown>);
  const service = await testService(
    { SMTP_URL: 'smtp://127.0.0.1:1' },
    { log: pino({}, { write }), change: pollOften },
  );
  const said = () => lines.filter(({ event }) => event === 'accounts.mail-undelivered');
  const db = openTestDatabase(service.databaseUrl);
  try {
    for (const email of ['one@example.org', 'two@example.org', 'three@example.org']) {
      await call(service.url, 'POST', '/v2/accounts', { body: { email, password } });
      const body = { email };
      await call(service.url, 'POST', '/v2/accounts/password/forgotten', { body });
    }
    const tried = async () =>
      (await db.query('select from account_mail where attempts > 0 and busy_until is null'))
        .rowCount;
    await expect.poll(tried).toBe(3);
    expect(said()).toMatchObject([{ via: 'email', count: 1, reason: 'no-answer', again: true }]);
  } finally {
    await db.close();
    await service.close();
  }
  expect(said()).toHaveLength(2);
  for (const line of said()) {
    expect(line['why']).toEqual(expect.any(String));
    expect(JSON.stringify(line)).not.toMatch(/ at .*\.ts/);
  }
});

it('a mail that its server does not answer yet delays no other', async () => {
  const held = Promise.withResolvers<undefined>();
  const isSlow = (recipient: string) => recipient.startsWith('slow');
  const mail = await startMailServer((to) => (isSlow(to) ? held.promise : undefined));
  const service = await testService({ SMTP_URL: mail.url }, { change: pollOften });
  const db = openTestDatabase(service.databaseUrl);
  const slowOnes = async () =>
    (
      await db.query<{ busy: boolean }>(
        `select busy_until is not null as busy from account_mail where recipient like 'slow%'`,
      )
    ).rows;
  const ask = async (email: string) => {
    await call(service.url, 'POST', '/v2/accounts', { body: { email, password } });
    await call(service.url, 'POST', '/v2/accounts/password/forgotten', { body: { email } });
  };
  try {
    await ask('slow@example.org');
    await expect.poll(slowOnes).toEqual([{ busy: true }]);
    await ask('other@example.org');
    await mail.mailTo('other@example.org');
    expect(await slowOnes()).toEqual([{ busy: true }]);
  } finally {
    held.resolve(undefined);
    await service.close();
    await db.close();
    await mail.close();
  }
});

it('tries are counted by address, as those of a login are', async () => {
  const app = await startApp({ hasMail: true, logins: { loginsPerAddress: 3 } });
  try {
    const asks = [];
    for (let n = 0; n < 4; n += 1) {
      const body = { email: `${n}@example.org` };
      asks.push(await app.call('POST', '/v2/accounts/password/forgotten', { body }));
    }
    expect(asks.map(({ status }) => status)).toEqual([200, 200, 200, 429]);
    expect(asks[3]?.headers.get('ratelimit-policy')).toBe('"loginsPerAddress";q=3;w=60');
    const body = { token: 'x', password: 'battery staple' };
    const reset = await app.call('POST', '/v2/accounts/password/reset', { body });
    expect(reset.status).toBe(429);
  } finally {
    await app.close();
  }
});

it('a network has sixty links an hour sent, whomever they are for; another one is not kept from it', async () => {
  const app = await startApp({ hasMail: true, http: { trustedProxies: ['127.0.0.1'] } });
  try {
    const ask = async (n: number, from: string) => {
      const body = { email: `${n}@example.org` };
      const headers = { 'x-forwarded-for': from };
      return (await app.call('POST', '/v2/accounts/password/forgotten', { body, headers })).status;
    };
    for (let n = 0; n < 60; n += 1) expect(await ask(n, `2001:db8:0:1::${n}`)).toBe(200);
    expect(await ask(60, '2001:db8:0:1::ffff')).toBe(429);
    expect(await ask(60, '2001:db8:0:2::1')).toBe(200);
  } finally {
    await app.close();
  }
});

it('addresses that all accounts together ask to confirm in an hour have a limit, links for passwords none', async () => {
  const count = createLinkMailLimit();
  for (let n = 0; n < 500; n += 1) await count('confirm-email', `198.51.100.${n % 250}`);
  await expect(count('confirm-email', '203.0.113.1')).rejects.toMatchObject({
    code: 'too-many-requests',
  });
  await count('reset', '203.0.113.1');
});

it('an account has ten addresses an hour asked for confirmation, one address three mails', async () => {
  const app = await startApp({ hasMail: true });
  try {
    const { token } = await app.register('asks@example.org');
    const ask = async (email: string) => {
      const body = { password, email };
      return (await app.call('PUT', '/v2/accounts/email', { token, body })).status;
    };
    const statuses = [];
    for (let n = 0; n < 4; n += 1) statuses.push(await ask('Same@example.org'));
    for (let n = 0; n < 8; n += 1) statuses.push(await ask(`other-${n}@example.org`));
    expect(statuses).toEqual([...Array.from({ length: 11 }, () => 200), 429]);
    const countTo = async (recipient: string) => {
      const { rows } = await app.db.query<{ n: number }>(
        'select count(*) as n from account_mail where recipient_normal = $1',
        [recipient],
      );
      return rows[0]?.n;
    };
    expect([await countTo('same@example.org'), await countTo('other-0@example.org')]).toEqual([
      3, 1,
    ]);
    // An hour later it may again.
    app.time.offsetMs = 3_600_001;
    expect(await ask('same@example.org')).toBe(200);
    expect(await countTo('same@example.org')).toBe(4);
  } finally {
    await app.close();
  }
});

it('confirmations count for a mailbox, and leave the links of who has forgotten a password alone', async () => {
  const app = await startApp({ hasMail: true });
  try {
    const { token } = await app.register('attacker@example.org');
    for (const email of [
      'victim+1@example.org',
      'Victim@example.org',
      'victim+2@example.org',
      'victim+3@example.org',
    ]) {
      const body = { password, email };
      expect((await app.call('PUT', '/v2/accounts/email', { token, body })).status).toBe(200);
    }
    const forgotten = ['victim@example.org', 'victim+1@example.org', 'victim@example.org'];
    for (const email of forgotten)
      await app.call('POST', '/v2/accounts/password/forgotten', { body: { email } });
    const { rows } = await app.db.query<{ kind: string; recipient: string }>(
      'select kind, recipient from account_mail order by id',
    );
    const to = (kind: string) =>
      rows.filter((row) => row.kind === kind).map(({ recipient }) => recipient);
    expect(to('confirm-email')).toEqual([
      'victim+1@example.org',
      'Victim@example.org',
      'victim+2@example.org',
    ]);
    expect(to('reset')).toEqual(forgotten);
  } finally {
    await app.close();
  }
});

it('a link is good for 30 minutes', async () => {
  const app = await startApp();
  try {
    const { uuid: accountUuid } = await app.register('late@example.org');
    const { rows } = await app.db.query<{ passwordHash: string; email: string }>(
      'select password_hash as "passwordHash", email from account where uuid = $1',
      [accountUuid],
    );
    const account = { accountUuid, passwordHash: '', email: '', ...rows[0] };
    const { mailLinks } = deriveKeys('a secret of the tests, long enough to be one');
    const token = makeResetToken(mailLinks, account, Date.now());
    const body = { token, password: 'battery staple' };
    const use = async () =>
      (await app.call('POST', '/v2/accounts/password/reset', { body })).status;
    app.time.offsetMs = 30 * 60_000 + 1_000;
    expect(await use()).toBe(400);
    app.time.offsetMs = 29 * 60_000;
    expect(await use()).toBe(200);
  } finally {
    await app.close();
  }
});
