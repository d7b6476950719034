import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { mailboxOf } from '../../src/lib/address.ts';
import { takeFromDailyLimits } from '../../src/notifications/daily-limits.ts';
import { openApp } from '../journeys/app.ts';
import * as given from '../notifications/fixtures.ts';
import type { TestService } from '../journeys/service.ts';
import type { MailServer } from '../support/smtp.ts';
import {
  getContacts,
  linkIn,
  newAddress,
  putEmails,
  startMailedService,
  type MailedService,
} from './people.ts';

let mail: MailServer;
let service: TestService;
let mailed: MailedService;
beforeAll(async () => {
  mailed = await startMailedService();
  ({ mail, service } = mailed);
});
afterAll(() => mailed?.close());

it('over the quota nothing is stored, even by concurrent requests', async () => {
  const app = await openApp(service.url);
  const list = (n: number) =>
    Array.from({ length: n }, (_, i) => ({ address: `many-${i}@example.org` }));
  await expect(putEmails(app, ...list(5))).rejects.toThrow(/403.*"quota":"contacts","limit":4/s);
  const puts = await Promise.allSettled([3, 4, 5, 6].map((n) => putEmails(app, ...list(n))));
  expect(puts.map(({ status }) => status)).toEqual([
    'fulfilled',
    'fulfilled',
    'rejected',
    'rejected',
  ]);
  expect((await getContacts(app)).emails.length).toBeLessThanOrEqual(4);
});

it.each([
  [{ emails: [{ address: 'no address' }] }, '/emails/0/address'],
  [{ emails: [{ address: 'a@example.org' }, { address: 'A@example.org' }] }, '/emails/1/address'],
  [{ emails: [{ address: 'a@example.org', labels: ['x', 'x'] }] }, '/emails/0/labels'],
  [{ emails: [{ address: 'a@example.org', afterMs: 604_800_001 }] }, '/emails/0/afterMs'],
  [{ webhooks: [{ url: 'ftp://example.org' }] }, '/webhooks/0/url'],
  [{ webhooks: [{ url: 'http://me:secret@example.org' }] }, '/webhooks/0/url'],
  [{ webhooks: [{ url: 'http://127.0.0.1/hook' }] }, '/webhooks/0/url'],
  [{ webhooks: [{ url: 'http://[::ffff:10.1.2.3]/hook' }] }, '/webhooks/0/url'],
  [{ webhooks: [{ url: 'http://0x7f.1/hook' }] }, '/webhooks/0/url'],
])('%j is refused, with its place', async (body, path) => {
  const app = await openApp(service.url);
  await expect(app.call('PUT', '/v2/accounts/contacts', body)).rejects.toThrow(
    new RegExp(`^400 .*"path":"${path}"`, 's'),
  );
});

it('an address is asked for confirmation five times a day, whichever accounts ask', async () => {
  const address = newAddress();
  for (let n = 1; n <= 5; n += 1) await putEmails(await openApp(service.url), { address });
  const app = await openApp(service.url);
  await putEmails(app, { address: address.toUpperCase() });
  expect(await app.call('POST', '/v2/accounts/contacts/test')).toMatchObject({
    messages: [{ type: 'confirm', state: 'held-back', reason: 'confirmations-per-address' }],
  });
  const arrived = () => mail.mails.filter(({ to }) => to.includes(address)).length;
  await expect.poll(arrived, { timeout: 60_000 }).toBe(5);
});

it('a plus and what follows belong to the same mailbox', async () => {
  const [name, host] = newAddress().split('@');
  const app = await openApp(service.url);
  for (const n of [1, 2])
    await putEmails(
      app,
      ...Array.from({ length: 3 }, (_, i) => ({ address: `${name}+${n}-${i}@${host}` })),
    );
  expect(await app.call('POST', '/v2/accounts/contacts/test')).toMatchObject({
    messages: expect.arrayContaining([
      expect.objectContaining({ state: 'held-back', reason: 'confirmations-per-address' }),
    ]) as unknown,
  });
});

it('so do addresses that differ only in full stops, if their host ignores them', async () => {
  const name = randomUUID().slice(0, 8);
  const dotted = (n: number) =>
    `${name.slice(0, n)}.${name.slice(n)}@g${n % 2 ? '' : 'oogle'}mail.com`;
  const app = await openApp(service.url);
  for (const at of [1, 4]) {
    await putEmails(app, ...[0, 1, 2].map((n) => ({ address: dotted(at + n) })));
  }
  expect(await app.call('POST', '/v2/accounts/contacts/test')).toMatchObject({
    messages: expect.arrayContaining([
      expect.objectContaining({ state: 'held-back', reason: 'confirmations-per-address' }),
    ]) as unknown,
  });
  expect(mailboxOf('A.b.C+x@GoogleMail.com')).toBe('abc@gmail.com');
  expect(mailboxOf('a.b@example.org')).toBe('a.b@example.org');
});

const few = { ...given.quotas, messagesPerDay: 20 };

it.each([
  ['of one that somebody stands for a tenth of its messages', { isKnown: true }, few, 2, 'account'],
  ['of one that nobody stands for five', { isKnown: false }, given.quotas, 5, 'account'],
  [
    'of one network',
    { isKnown: true },
    { ...given.quotas, confirmationsPerNetwork: 3 },
    3,
    'network',
  ],
  [
    'of all',
    { isKnown: true },
    { ...given.quotas, confirmationsPerInstallation: 4 },
    4,
    'installation',
  ],
  [
    'of all that nobody stands for half',
    { isKnown: false },
    { ...given.quotas, confirmationsPerInstallation: 4 },
    2,
    'installation',
  ],
])('strangers are asked only so often a day: %s', (_, { isKnown }, quotas, most, what) => {
  const used = new Map<string, number>();
  const confirmation = { network: '203.0.113.7', isKnown };
  const ask = (n: number) =>
    takeFromDailyLimits(
      { accountId: 1, channel: 'email', recipient: `${n}@x.org`, confirmation },
      used,
      () => quotas,
    );
  for (let n = 0; n < most; n += 1) expect(ask(n)).toHaveProperty('isLast');
  expect(ask(most)).toEqual({ full: `confirmations-per-${what}` });
});

it('an account confirms its own address before it asks many others', async () => {
  const app = await openApp(service.url);
  const own = app.email.replace(/^[^@]+/, (name) => name.toUpperCase());
  const others = [newAddress(), newAddress(), newAddress()];
  const lists = [
    others.map((address) => ({ address })),
    [{ address: newAddress() }, { address: newAddress() }, { address: own }],
  ];
  for (const list of lists) await putEmails(app, ...list);
  const test = async () => {
    const { messages } = await app.call<{ messages: { address: string; reason?: string }[] }>(
      'POST',
      '/v2/accounts/contacts/test',
    );
    return messages.map(({ reason }) => reason);
  };
  // Three addresses of others, then its own and one more: five.
  const link = linkIn(await mail.mailTo(own), 'confirm');
  expect(await test()).toEqual(Array(3).fill('confirmations-per-account'));
  expect((await fetch(link, { method: 'POST' })).status).toBe(200);
  expect(await test()).toEqual([undefined, undefined, undefined]);
});

it("the number of contacts is reported with the account's quotas", async () => {
  const app = await openApp(service.url);
  await putEmails(app, { address: newAddress() }, { address: newAddress() });
  const { usage } = await app.call<{ usage: object[] }>('GET', '/v2/accounts/usage');
  expect(usage).toContainEqual({ quota: 'contacts', limit: 4, used: 2 });
  expect(usage).toContainEqual({ quota: 'messagesPerDay', limit: 1_000, used: 2 });
  expect(usage).toContainEqual({ quota: 'webhooksPerDay', limit: 10_000, used: 0 });
});
