import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  configuration,
  openApp,
  thresholdPurpose,
  type App,
  type Registration,
} from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';
import { testService, type TestService } from '../journeys/service.ts';
import { startMailServer, type Mail, type MailServer } from '../support/smtp.ts';

let mail: MailServer;
let service: TestService;
beforeAll(async () => {
  mail = await startMailServer((to) => (to.startsWith('refused') ? 550 : undefined));
  service = await testService(
    { SMTP_URL: mail.url },
    {
      change: (config) => ({
        ...config,
        notifications: { ...config.notifications, pollIntervalMs: 200 },
        quotas: { ...config.quotas, contacts: 4 },
      }),
    },
  );
});
afterAll(async () => {
  await service?.close();
  await mail?.close();
});

type Email = { address: string; confirmed: boolean; labels: string[]; last?: { state: string } };
type Contacts = { emails: Email[]; channels: Record<string, boolean> };

let people = 0;
const newAddress = () => `person-${++people}@example.org`;

const putEmails = (app: App, ...emails: object[]) =>
  app.call<Contacts>('PUT', '/v2/accounts/contacts', { emails });
const getContacts = (app: App) => app.call<Contacts>('GET', '/v2/accounts/contacts');

function linkIn({ text }: Mail, purpose: string): string {
  const link = new RegExp(`http://\\S+/${purpose}\\?token=[\\w-]+`).exec(text)?.[0];
  if (link === undefined) throw new Error(`No link to /${purpose} in: ${text}`);
  return link;
}

/** An app with a confirmed address, as a person gets one. */
async function givenConfirmed(app: App, entry: object = {}): Promise<string> {
  const address = newAddress();
  await putEmails(app, { address, ...entry });
  const link = linkIn(await mail.mailTo(address), 'confirm');
  expect((await fetch(link, { method: 'POST' })).status).toBe(200);
  return address;
}

const pushing = () => {
  const purpose = thresholdPurpose(1, 30);
  const [event] = purpose.states[0]?.events ?? [];
  if (event) Object.assign(event.actions.cloud, { sendPush: true });
  return purpose;
};

/** A device that tells people when 0x01 exceeds 30. */
async function givenDevice(app: App, labels: string[] = []) {
  const registration = await app.call<Registration>('POST', '/v2/devices', configuration);
  const uuid = registration.deviceAuthUuid;
  if (labels.length > 0) await app.call('PUT', `/v2/devices/${uuid}/labels`, { labels });
  await app.call('POST', '/v2/devices/profile', {
    deviceAuthUuids: [uuid],
    purposes: [pushing()],
  });
  return { registration, uuid };
}

async function ring(registration: Registration): Promise<void> {
  const device = await connectDevice(registration);
  await device.publish('up/measurements', { sId: '0x01', val: 31 });
  await device.end();
}

it('asks a new address for confirmation; the link alone confirms nothing, its button does', async () => {
  const app = await openApp(service.url);
  const address = newAddress();
  const put = await putEmails(app, { address });
  expect(put.emails).toMatchObject([{ address, confirmed: false, labels: [] }]);
  expect(put.channels).toEqual({ push: false, sms: false, email: true, webhook: true });
  const asked = await mail.mailTo(address);
  const link = linkIn(asked, 'confirm');
  expect(link).toMatch(service.url);
  const page = await fetch(link);
  const text = await page.text();
  expect(page.headers.get('content-type')).toBe('text/html; charset=utf-8');
  expect(page.headers.get('content-security-policy')).toContain("form-action 'self'");
  expect(text).toContain('<form method="post">');
  expect(text).not.toContain('<script');
  expect((await getContacts(app)).emails).toMatchObject([{ confirmed: false }]);
  for (const _twice of [1, 2]) {
    const done = await fetch(link, { method: 'POST' });
    expect(await done.text()).toContain('Confirmed');
  }
  expect((await getContacts(app)).emails).toMatchObject([{ confirmed: true }]);
  expect((await putEmails(app, { address: address.toUpperCase() })).emails).toMatchObject([
    { confirmed: true },
  ]);
});

it('a link does only what it was made for, and nothing once its address was removed', async () => {
  const app = await openApp(service.url);
  const address = newAddress();
  await putEmails(app, { address });
  const asked = await mail.mailTo(address);
  const link = linkIn(asked, 'confirm');
  const wrong = await fetch(link.replace('/confirm', '/unsubscribe'), { method: 'POST' });
  expect(await wrong.text()).toContain('This link is not valid');
  const cut = await fetch(link.slice(0, -3), { method: 'POST' });
  expect(await cut.text()).toContain('This link is not valid');
  await putEmails(app);
  const gone = await fetch(link, { method: 'POST' });
  expect(await gone.text()).toContain('This link is not valid');
  await putEmails(app, { address });
  expect((await getContacts(app)).emails).toMatchObject([{ address, confirmed: false }]);
});

it('an event with sendPush reaches a confirmed address, with a one-click end to it', async () => {
  const app = await openApp(service.url);
  const address = await givenConfirmed(app);
  const { registration, uuid } = await givenDevice(app);
  await ring(registration);
  const told = await mail.mailTo(
    address,
    ({ headers }) => headers['subject'] !== undefined && !headers['subject'].startsWith('Confirm'),
  );
  expect(told.headers['subject']).toBe('Greenhouse: too warm');
  expect(told.headers['list-unsubscribe-post']).toBe('List-Unsubscribe=One-Click');
  expect(told.text).toMatch(/0x01 31, above 30 \(\d\d:\d\d UTC\)/);
  const unsubscribe = /<(http[^>]+)>/.exec(told.headers['list-unsubscribe'] ?? '')?.[1] ?? '';
  await expect
    .poll(() => app.call('GET', `/v2/devices/${uuid}/notifications`), { timeout: 20_000 })
    .toMatchObject({
      notifications: [{ kind: 'email', state: 'sent', via: 'smtp', recipient: 'p…@example.org' }],
    });
  const before = await fetch(unsubscribe);
  expect(await before.text()).toContain('<form method="post">');
  expect((await getContacts(app)).emails).toMatchObject([{ confirmed: true }]);
  await fetch(unsubscribe, {
    method: 'POST',
    headers: { 'Content-Type': 'application/x-www-form-urlencoded' },
    body: 'List-Unsubscribe=One-Click',
  });
  expect((await getContacts(app)).emails).toMatchObject([{ confirmed: false, unsubscribed: true }]);
  const old = linkIn(await mail.mailTo(address), 'confirm');
  expect(await (await fetch(old, { method: 'POST' })).text()).toContain('This link is not valid');
});

it('labels confine a contact to devices that have one of them', async () => {
  const app = await openApp(service.url);
  const address = await givenConfirmed(app, { labels: ['cellar', 'attic'] });
  const other = await givenDevice(app, ['garden']);
  const suiting = await givenDevice(app, ['attic', 'north']);
  const { devices } = await app.call<{ devices: { uuid: string; labels: string[] }[] }>(
    'GET',
    '/v2/devices',
  );
  expect(devices.map(({ labels }) => labels)).toEqual([['garden'], ['attic', 'north']]);
  await ring(other.registration);
  await ring(suiting.registration);
  await mail.mailTo(address, ({ headers }) => headers['subject'] === 'Greenhouse: too warm');
  const outcomes = await app.call('GET', `/v2/devices/${other.uuid}/notifications`);
  expect(outcomes).toMatchObject({ notifications: [] });
});

it('a trial goes to what is confirmed, and the link again to what is not', async () => {
  const app = await openApp(service.url);
  const address = await givenConfirmed(app);
  const second = newAddress();
  await putEmails(app, { address }, { address: second });
  await mail.mailTo(second);
  expect(await app.call('POST', '/v2/accounts/contacts/test')).toMatchObject({
    messages: [
      { address, type: 'test', state: 'queued' },
      { address: second, type: 'confirm', state: 'queued' },
    ],
  });
  await mail.mailTo(address, ({ headers }) => headers['subject'] === 'A trial');
  await expect
    .poll(() => mail.mails.filter(({ to }) => to.includes(second)).length, { timeout: 20_000 })
    .toBe(2);
  await expect
    .poll(async () => (await getContacts(app)).emails[0]?.last, { timeout: 20_000 })
    .toMatchObject({ state: 'sent' });
});

it('a refused address fails with its reason', async () => {
  const app = await openApp(service.url);
  await putEmails(app, { address: `refused-${Date.now()}@example.org` });
  await expect
    .poll(async () => (await getContacts(app)).emails[0]?.last, { timeout: 20_000 })
    .toMatchObject({ state: 'failed', reason: 'provider-refused' });
});

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

it('installing warns of what leads to nobody, until it leads to somebody', async () => {
  const app = await openApp(service.url);
  const { deviceAuthUuid } = await app.call<Registration>('POST', '/v2/devices', configuration);
  const purpose = pushing();
  const sms = { text: 'Come home', phoneNumber: ['+420123456789'] };
  Object.assign(purpose.states[0]?.events[0]?.actions ?? {}, { sms });
  const install = () =>
    app.call<{ warnings?: { path: string; message: string }[] }>('POST', '/v2/devices/profile', {
      deviceAuthUuids: [deviceAuthUuid],
      purposes: [purpose],
    });
  const at = '/purposes/0/states/0/events/0/actions';
  const push = `${at}/cloud/sendPush`;
  const log = {
    path: `${at}/sms`,
    message: 'no SMS provider is configured: SMS go to the log only',
  };
  const first = await install();
  expect(first.warnings).toContainEqual({
    path: push,
    message: 'nobody would be told: the account has no contact',
  });
  expect(first.warnings).toContainEqual(log);
  await givenConfirmed(app);
  const second = await install();
  expect(second.warnings?.filter(({ path }) => path === push)).toEqual([]);
  expect(second.warnings).toContainEqual(log);
});
