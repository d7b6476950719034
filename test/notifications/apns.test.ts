import { decodeJwt, decodeProtectedHeader } from 'jose';
import { afterEach, expect, test } from 'vitest';
import type { OpenChannel } from '../../src/notifications/channels/channel.ts';
import { openPush } from '../../src/notifications/channels/push.ts';
import { NotificationSettings } from '../../src/notifications/settings.ts';
import { startNotifications } from '../../src/notifications/notifications.ts';
import { testDatabase } from '../support/database.ts';
import { startApnsServer, tlsFile, type Answer } from './apns-server.ts';
import {
  contacts,
  deliveryOf,
  givenDevice,
  outcomesOf,
  pushOf,
  quotas,
  silent,
  withEnqueue,
} from './fixtures.ts';

const closing: (() => Promise<void>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

const message = deliveryOf({
  kind: 'push',
  recipient: 'abcdef0123456789',
  title: 'Too warm',
  body: 'Cellar: 0x1: 21.5',
});

/** The time to answer is that of a busy machine, unless the test is about its end. */
function configFor(port: number, timeoutMs = 60_000) {
  return NotificationSettings.parse({
    pollIntervalMs: 50,
    push: {
      keyFile: tlsFile('provider-key.p8'),
      keyId: 'KEY1234567',
      teamId: 'TEAM123456',
      topic: 'com.example.app',
      address: 'localhost',
      port,
      caFile: tlsFile('localhost-cert.pem'),
      timeoutMs,
    },
  });
}

async function given(answers: Answer[] = []) {
  const server = await startApnsServer(answers);
  closing.push(server.close);
  return server;
}

async function channelFor(port: number, timeoutMs?: number): Promise<OpenChannel> {
  const channel = await openPush(configFor(port, timeoutMs).push);
  if (!channel) throw new Error('Push is configured.');
  closing.push(channel.close);
  return channel;
}

test('a message is sent in the form that the push service requires', async () => {
  const { port, received } = await given();
  const channel = await channelFor(port);
  await channel.send(message);
  expect(received).toMatchObject([
    {
      path: '/3/device/abcdef0123456789',
      headers: {
        ':method': 'POST',
        'apns-topic': 'com.example.app',
        'apns-push-type': 'alert',
        'apns-collapse-id': 'notification-7',
      },
      body: {
        aps: { alert: { title: 'Too warm', body: 'Cellar: 0x1: 21.5' }, sound: 'default' },
        deviceAuthUuid: 'u',
        ...message.engine,
      },
    },
  ]);
  const token = String(received[0]?.headers['authorization']).replace('bearer ', '');
  expect(decodeProtectedHeader(token)).toMatchObject({ alg: 'ES256', kid: 'KEY1234567' });
  expect(decodeJwt(token)).toMatchObject({ iss: 'TEAM123456' });
});

test.each([
  { answer: { status: 410, body: { reason: 'Unregistered', timestamp: 1 } }, verdict: 'gone' },
  { answer: { status: 400, body: { reason: 'BadDeviceToken' } }, verdict: 'never' },
  { answer: { status: 413, body: { reason: 'PayloadTooLarge' } }, verdict: 'never' },
  { answer: { status: 403, body: { reason: 'InvalidProviderToken' } }, verdict: 'again' },
  { answer: { status: 429, body: { reason: 'TooManyRequests' } }, verdict: 'again' },
  { answer: { status: 500, body: { reason: 'InternalServerError' } }, verdict: 'again' },
  { answer: { status: 503, body: { reason: 'ServiceUnavailable' } }, verdict: 'again' },
])('$answer.status $answer.body.reason means $verdict', async ({ answer, verdict }) => {
  const { port, received } = await given([answer]);
  const channel = await channelFor(port);
  await expect(channel.send(message)).rejects.toMatchObject({ verdict });
  expect(received).toHaveLength(1);
  await channel.send(message);
  expect(received).toHaveLength(2);
});

test('no answer in time: another attempt', async () => {
  const { port } = await given(['never']);
  const channel = await channelFor(port, 500);
  await expect(channel.send(message)).rejects.toMatchObject({ verdict: 'again' });
});

test('connection refused: another attempt', async () => {
  const server = await startApnsServer();
  await server.close();
  const channel = await channelFor(server.port);
  await expect(channel.send(message)).rejects.toMatchObject({ verdict: 'again' });
});

test('status 410 removes the token from the account; the other token still gets its message', async () => {
  const gone = { status: 410, body: { reason: 'Unregistered', timestamp: 1 } };
  const { port, received } = await given([gone]);
  const database = await testDatabase();
  closing.push(() => database.drop());
  const outbox = await startNotifications({
    onAlarms: () => undefined,
    contacts,
    db: database.db,
    connectionString: database.url,
    config: { ...configFor(port), concurrency: 1 },
    quotasOf: () => quotas,
    isSmsForAll: false,
    log: silent,
    clock: Date.now,
  });
  closing.push(outbox.close);
  const owner = await givenDevice(database.db, ['aaaaaaaa', 'bbbbbbbb']);
  await withEnqueue(outbox, Date.now).enqueue(database.db, [pushOf(owner)]);
  const outcomes = await outcomesOf(database.db, owner, (all) =>
    all.every((outcome) => outcome.state !== 'queued'),
  );
  expect(outcomes).toMatchObject([
    { recipient: '…bbbb', state: 'sent', via: 'apns' },
    { recipient: '…aaaa', state: 'failed', reason: 'recipient-gone' },
  ]);
  expect(received).toHaveLength(2);
  const { rows } = await database.db.query('select apn from account where id = $1', [
    owner.accountId,
  ]);
  expect(rows).toEqual([{ apn: [{ token: 'bbbbbbbb' }] }]);
});

test('without a push service the outcome says so', async () => {
  const database = await testDatabase();
  closing.push(() => database.drop());
  const outbox = await startNotifications({
    onAlarms: () => undefined,
    contacts,
    db: database.db,
    connectionString: database.url,
    config: NotificationSettings.parse({ pollIntervalMs: 50 }),
    quotasOf: () => quotas,
    isSmsForAll: false,
    log: silent,
    clock: Date.now,
  });
  closing.push(outbox.close);
  const owner = await givenDevice(database.db, ['aaaaaaaa']);
  await withEnqueue(outbox, Date.now).enqueue(database.db, [pushOf(owner)]);
  const outcomes = await outcomesOf(database.db, owner, ([one]) => one?.state !== 'queued');
  expect(outcomes).toMatchObject([{ state: 'failed', reason: 'no-provider', via: 'none' }]);
});
