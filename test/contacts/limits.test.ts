import { afterAll, beforeAll, expect, it } from 'vitest';
import { takeRoom } from '../../src/notifications/allot.ts';
import { openApp } from '../journeys/app.ts';
import type { TestService } from '../journeys/service.ts';
import type { MailServer } from '../support/smtp.ts';
import {
  getContacts,
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

it('beyond the quota nothing is stored, also by requests at once', async () => {
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
])('%j is refused, and says where', async (body, path) => {
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
  await expect.poll(arrived, { timeout: 20_000 }).toBe(5);
});

it('what follows a plus is the same mailbox', async () => {
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

it('an account asks strangers a tenth of what it may send a day', () => {
  const used = new Map<string, number>();
  const ask = (recipient: string) =>
    takeRoom({ accountId: 1, channel: 'email', recipient, isConfirmation: true }, used, () => ({
      messagesPerDay: 20,
      messagesPerRecipient: 20,
      webhooksPerDay: 20,
      smsPerDay: 20,
      smsPerNumber: 20,
      smsPerInstallation: 20,
    }));
  expect(['a@x.org', 'b@x.org', 'c@x.org'].map(ask)).toEqual([
    { isLast: false },
    { isLast: false },
    { full: 'confirmations-per-account' },
  ]);
});

it('what an account has in use is told with its quotas', async () => {
  const app = await openApp(service.url);
  await putEmails(app, { address: newAddress() }, { address: newAddress() });
  const { usage } = await app.call<{ usage: object[] }>('GET', '/v2/accounts/usage');
  expect(usage).toContainEqual({ quota: 'contacts', limit: 4, used: 2 });
  expect(usage).toContainEqual({ quota: 'messagesPerDay', limit: 1_000, used: 2 });
  expect(usage).toContainEqual({ quota: 'webhooksPerDay', limit: 10_000, used: 0 });
});
