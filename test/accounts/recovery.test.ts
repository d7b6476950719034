import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { call } from './app.ts';
import { linkIn, startMailedService, type MailedService } from '../contacts/people.ts';
import type { MailServer } from '../support/smtp.ts';

let mailed: MailedService;
let mail: MailServer;
let url: string;
beforeAll(async () => {
  mailed = await startMailedService();
  ({ mail } = mailed);
  ({ url } = mailed.service);
});
afterAll(() => mailed?.close());

const password = 'correct horse';
let people = 0;

async function register() {
  const email = `Recover-${++people}@example.org`;
  const { body } = await call(url, 'POST', '/v2/accounts', { body: { email, password } });
  return { email, token: String(body['accountAuthToken']) };
}

const logIn = async (email: string, secret: string) =>
  (await call(url, 'POST', '/v2/accounts/login', { body: { email, password: secret } })).status;
const forget = (email: string) =>
  call(url, 'POST', '/v2/accounts/password/forgotten', { body: { email } });
const reset = (token: string, secret: string) =>
  call(url, 'POST', '/v2/accounts/password/reset', { body: { token, password: secret } });
const isOpen = async (token: string) =>
  (await call(url, 'GET', '/v2/accounts', { token })).status === 200;
const tokenIn = (link: string) => new URL(link).searchParams.get('token') ?? '';
const kindsOf = async (token: string) => {
  const { body } = await call(url, 'GET', '/v2/accounts/audit', { token });
  return (body['entries'] as { kind: string; details: object }[]).map(({ kind }) => kind);
};
const enter = async (email: string, secret: string) => {
  const body = { email, password: secret };
  return String((await call(url, 'POST', '/v2/accounts/login', { body })).body['accountAuthToken']);
};

async function linkFor(email: string): Promise<string> {
  expect((await forget(email.toLowerCase())).status).toBe(200);
  return linkIn(
    await mail.mailTo(email, ({ headers }) => headers['subject'] === 'Set a new password'),
    'reset',
  );
}

describe('a forgotten password', () => {
  it('is set by a link, which ends all sessions, informs the owner and is audited', async () => {
    const { email, token } = await register();
    const link = await linkFor(email);
    expect((await reset(tokenIn(link), 'battery staple')).status).toBe(200);
    expect(await isOpen(token)).toBe(false);
    expect([await logIn(email, password), await logIn(email, 'battery staple')]).toEqual([
      401, 200,
    ]);
    const told = await mail.mailTo(email, ({ headers }) =>
      /changed/.test(headers['subject'] ?? ''),
    );
    expect(told.text).not.toContain('token=');
    const opened = await enter(email, 'battery staple');
    await expect
      .poll(() => kindsOf(opened))
      .toEqual(expect.arrayContaining(['password-reset', 'password-reset-asked']));
  });

  it('is set by the page: opening the link uses nothing up, the button works once', async () => {
    const { email } = await register();
    const link = await linkFor(email);
    for (const method of ['GET', 'HEAD', 'GET'])
      expect((await fetch(link, { method })).status).toBe(200);
    const german = await fetch(link, { headers: { 'Accept-Language': 'de-AT,de;q=0.9' } });
    expect(await german.text()).toMatch(/<html lang="de">[^]*<h1>Neues Passwort festlegen/);
    const page = await (await fetch(link)).text();
    expect(page).toContain('<form method="post">');
    expect(page).toContain('type="password"');
    expect(page).not.toContain('<script');
    const post = async (secret: string) => {
      const body = new URLSearchParams({ password: secret });
      const answer = await fetch(link, { method: 'POST', body });
      expect(answer.status).toBe(200);
      return /<h1>(.*)<\/h1>/.exec(await answer.text())?.[1];
    };
    expect(await post('short')).toBe('Set a new password');
    expect(await logIn(email, password)).toBe(200);
    expect(await post('ein neues Passwort & mehr')).toBe('Password set');
    expect(await post('another password')).toBe('This link is not valid');
    expect(await logIn(email, 'ein neues Passwort & mehr')).toBe(200);
    expect(await (await fetch(link)).text()).toContain('This link is not valid');
  });

  it('is set once, even if many use the link at the same time', async () => {
    const { email } = await register();
    const token = tokenIn(await linkFor(email));
    const secrets = Array.from({ length: 6 }, (_, n) => `password number ${n}`);
    const answers = await Promise.all(secrets.map((secret) => reset(token, secret)));
    expect(answers.map(({ status }) => status).toSorted()).toEqual([200, 400, 400, 400, 400, 400]);
    const winner = secrets[answers.findIndex(({ status }) => status === 200)] ?? '';
    const entered = await Promise.all(secrets.map((secret) => logIn(email, secret)));
    expect(secrets.filter((_, n) => entered[n] === 200)).toEqual([winner]);
  });

  it('at most three mails an hour go to one address, and using one link ends all', async () => {
    const { email } = await register();
    const asked = Array.from({ length: 5 }, () => forget(email));
    expect((await Promise.all(asked)).map(({ status }) => status)).toEqual([
      200, 200, 200, 200, 200,
    ]);
    const mails = () => mail.mails.filter(({ to }) => to.includes(email));
    await expect.poll(() => mails().length).toBe(3);
    const tokens = mails().map((each) => tokenIn(linkIn(each, 'reset')));
    expect((await reset(tokens[0] ?? '', 'battery staple')).status).toBe(200);
    expect((await reset(tokens[1] ?? '', 'battery staple')).status).toBe(400);
    // The mail about the change comes after everything queued before it.
    await mail.mailTo(email, ({ headers }) => /changed/.test(headers['subject'] ?? ''));
    expect(mails().filter(({ text }) => text.includes('/reset?')).length).toBe(3);
  });

  it.each(['', 'x', 'A'.repeat(51), 'AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA'])(
    'no other token is accepted: %j',
    async (token) => {
      expect((await reset(token, 'battery staple')).status).toBe(400);
      const page = await fetch(`${url}/reset?token=${token}`);
      expect(await page.text()).toContain('This link is not valid');
    },
  );

  it('a link ends when the password or the address is changed in another way', async () => {
    const { email, token } = await register();
    const link = tokenIn(await linkFor(email));
    const body = { oldPassword: password, newPassword: 'battery staple' };
    expect((await call(url, 'PUT', '/v2/accounts/password', { token, body })).status).toBe(200);
    expect((await reset(link, 'third password')).status).toBe(400);
  });

  it('nothing is sent if there is no account, and the answer is the same', async () => {
    const { email } = await register();
    const [there, not] = [await forget(email), await forget('nobody-at-all@example.org')];
    expect({ ...not.body, timestamp: 0 }).toEqual({ ...there.body, timestamp: 0 });
    expect(not.status).toBe(there.status);
    await mail.mailTo(email);
    const { email: later } = await register();
    await linkFor(later);
    expect(mail.mails.filter(({ to }) => to.includes('nobody-at-all@example.org'))).toEqual([]);
  });
});

describe('a change of address', () => {
  const ask = (token: string, email: string, secret = password) =>
    call(url, 'PUT', '/v2/accounts/email', { token, body: { password: secret, email } });
  const confirmIn = async (to: string) => linkIn(await mail.mailTo(to), 'confirm-email');

  it('needs the password and the new address; sessions end, and the old address is informed', async () => {
    const { email, token } = await register();
    const wanted = `new-${email}`;
    expect((await ask(token, wanted, 'wrong password')).status).toBe(403);
    expect((await ask(token, wanted)).status).toBe(200);
    const link = await confirmIn(wanted);
    expect(await (await fetch(link)).text()).toContain('<button');
    expect([await isOpen(token), await logIn(wanted, password)]).toEqual([true, 401]);
    const posts = await Promise.all([1, 2, 3].map(() => fetch(link, { method: 'POST' })));
    const pages = await Promise.all(posts.map((answer) => answer.text()));
    expect(pages.filter((page) => page.includes('<h1>Confirmed'))).toHaveLength(1);
    expect(await isOpen(token)).toBe(false);
    expect([await logIn(email, password), await logIn(wanted, password)]).toEqual([401, 200]);
    expect((await mail.mailTo(email)).text).toContain(wanted);
    const opened = await enter(wanted, password);
    await expect
      .poll(() => kindsOf(opened))
      .toEqual(
        expect.arrayContaining(['email-changed', 'email-change-asked', 'email-change-refused']),
      );
  });

  it('to the address of another account gets the same answer, and sends nothing', async () => {
    const [one, other] = [await register(), await register()];
    expect((await ask(one.token, other.email)).status).toBe(200);
    // Queued later: once this one is there, the other one would be too.
    const third = await register();
    expect((await ask(third.token, `new-${third.email}`)).status).toBe(200);
    await confirmIn(`new-${third.email}`);
    expect(mail.mails.filter(({ to }) => to.includes(other.email))).toEqual([]);
  });

  it('is dropped by a new password, and replaced by another request', async () => {
    const { email, token } = await register();
    await ask(token, `first-${email}`);
    const first = await confirmIn(`first-${email}`);
    await ask(token, `second-${email}`);
    const second = await confirmIn(`second-${email}`);
    expect(await (await fetch(first, { method: 'POST' })).text()).toContain('not valid');
    expect((await reset(tokenIn(await linkFor(email)), 'battery staple')).status).toBe(200);
    expect(await (await fetch(second, { method: 'POST' })).text()).toContain('not valid');
  });
});
