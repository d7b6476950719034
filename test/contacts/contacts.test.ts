import { warning, type Warning } from '../../src/contract/warnings.ts';
import { afterAll, beforeAll, expect, it } from 'vitest';
import {
  configuration,
  openApp,
  thresholdPurpose,
  type App,
  type Registration,
} from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';
import type { TestService } from '../journeys/service.ts';
import type { MailServer } from '../support/smtp.ts';
import {
  getContacts,
  givenConfirmed,
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

const pushing = () => {
  const purpose = thresholdPurpose(1, 30);
  const [event] = purpose.states[0]?.events ?? [];
  if (event) Object.assign(event.actions.cloud, { sendPush: true });
  return purpose;
};

/** A device that notifies people when 0x01 exceeds 30. */
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

it('asks a new address for confirmation; opening the link confirms nothing, its button does', async () => {
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

it('an event with sendPush reaches a confirmed address, with a one-click unsubscribe', async () => {
  const app = await openApp(service.url);
  const address = await givenConfirmed(mail, app);
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
    .poll(() => app.call('GET', `/v2/devices/${uuid}/notifications`), { timeout: 60_000 })
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

it('labels restrict a contact to devices that have one of them', async () => {
  const app = await openApp(service.url);
  const address = await givenConfirmed(mail, app, { labels: ['cellar', 'attic'] });
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

it('a test goes to confirmed addresses, and the link again to others', async () => {
  const app = await openApp(service.url);
  const address = await givenConfirmed(mail, app);
  const second = newAddress();
  await putEmails(app, { address }, { address: second });
  await mail.mailTo(second);
  expect(await app.call('POST', '/v2/accounts/contacts/test')).toMatchObject({
    messages: [
      { address, type: 'test', state: 'queued' },
      { address: second, type: 'confirm', state: 'queued' },
    ],
  });
  await mail.mailTo(address, ({ headers }) => headers['subject'] === 'Test message');
  await expect
    .poll(() => mail.mails.filter(({ to }) => to.includes(second)).length, { timeout: 60_000 })
    .toBe(2);
  await expect
    .poll(async () => (await getContacts(app)).emails[0]?.last, { timeout: 60_000 })
    .toMatchObject({ state: 'sent' });
});

it('a refused address fails with its reason', async () => {
  const app = await openApp(service.url);
  await putEmails(app, { address: `refused-${Date.now()}@example.org` });
  await expect
    .poll(async () => (await getContacts(app)).emails[0]?.last, { timeout: 60_000 })
    .toMatchObject({ state: 'failed', reason: 'provider-refused' });
});

it('installing warns of channels that reach nobody, until they reach somebody', async () => {
  const app = await openApp(service.url);
  const { deviceAuthUuid } = await app.call<Registration>('POST', '/v2/devices', configuration);
  const purpose = pushing();
  const sms = { text: 'Come home', phoneNumber: ['+420123456789'] };
  Object.assign(purpose.states[0]?.events[0]?.actions ?? {}, { sms });
  const install = () =>
    app.call<{ warnings?: Warning[] }>('POST', '/v2/devices/profile', {
      deviceAuthUuids: [deviceAuthUuid],
      purposes: [purpose],
    });
  const at = '/purposes/0/states/0/events/0/actions';
  const push = `${at}/cloud/sendPush`;
  const log = warning(
    'sms-log-only',
    `${at}/sms`,
    'no SMS provider is configured: SMS are only written to the log',
  );
  const first = await install();
  expect(first.warnings).toContainEqual(
    warning('no-recipient', push, 'nobody would be notified: the account has no contacts'),
  );
  expect(first.warnings).toContainEqual(log);
  await givenConfirmed(mail, app);
  const second = await install();
  expect(second.warnings?.filter(({ path }) => path === push)).toEqual([]);
  expect(second.warnings).toContainEqual(log);
});
