import { createHmac } from 'node:crypto';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Delivery, OpenChannel } from '../../src/notifications/channels/channel.ts';
import { openSms } from '../../src/notifications/channels/sms.ts';
import { reasons, type Reason } from '../../src/notifications/reasons.ts';
import { NotificationSettings } from '../../src/notifications/settings.ts';
import { deliveryOf } from './fixtures.ts';

const message: Delivery = deliveryOf({
  kind: 'sms',
  recipient: '+420123456789',
  title: 'Event 3',
  body: 'Come home & close the window',
});

let secretFile: string;
const closing: (() => Promise<unknown>)[] = [];
beforeEach(async () => {
  const directory = await mkdtemp(join(tmpdir(), 'sms-'));
  closing.push(() => rm(directory, { recursive: true }));
  secretFile = join(directory, 'secret');
  await writeFile(secretFile, 'a secret of the two\n');
});
afterEach(async () => {
  for (const close of closing.splice(0).toReversed()) await close();
});

type Received = { method: string; url: string; headers: IncomingHttpHeaders; body: string };
type Reply = { status: number; headers?: Record<string, string> } | 'never';

/** One of the given replies for each request, then 201. */
async function startProvider(replies: Reply[] = []) {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      received.push({ method, url, headers, body });
      const reply = replies.shift() ?? { status: 201 };
      if (reply !== 'never') response.writeHead(reply.status, reply.headers).end('{"code":1}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  return { base: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received };
}

async function channelFor(sms: unknown, log = silentLog): Promise<OpenChannel> {
  const settings = NotificationSettings.parse({ sms });
  const channel = await openSms(settings.sms, { log, clock: () => 1_234 });
  closing.push(channel.close);
  return channel;
}
const silentLog = {
  debug: () => {},
  info: (_fields: object, _message: string) => {},
  warn: () => {},
};

/** A busy machine answers in time, unless the test is about the end of it. */
const patientMs = 60_000;
const webhook = (url: string, timeoutMs = patientMs) => ({
  driver: 'webhook',
  url,
  secretFile,
  timeoutMs,
});
const rest = (url: string, timeoutMs = patientMs) => ({
  driver: 'rest',
  url,
  username: 'AC1',
  passwordFile: secretFile,
  from: '+15550001',
  timeoutMs,
});

test('the webhook carries the message, signed', async () => {
  const { base, received } = await startProvider();
  const channel = await channelFor(webhook(`${base}/sms`));
  await channel.send(message);
  const [request] = received;
  expect(request).toMatchObject({ method: 'POST', url: '/sms' });
  expect(request?.headers).toMatchObject({
    'content-type': 'application/json',
    'idempotency-key': 'notification-7',
    'x-timestamp': '1234',
  });
  expect(JSON.parse(request?.body ?? '')).toEqual({
    notificationId: 7,
    phoneNumber: '+420123456789',
    text: 'Come home & close the window',
    deviceAuthUuid: 'u',
    ...message.engine,
  });
  const hmac = createHmac('sha256', 'a secret of the two').update(`1234.${request?.body}`);
  expect(request?.headers['x-signature']).toBe(`sha256=${hmac.digest('hex')}`);
});

test('the REST provider gets a form with basic authentication', async () => {
  const { base, received } = await startProvider();
  const channel = await channelFor(rest(`${base}/2010-04-01/Accounts/AC1/Messages.json`));
  await channel.send(message);
  const [request] = received;
  expect(request).toMatchObject({ method: 'POST', url: '/2010-04-01/Accounts/AC1/Messages.json' });
  const credentials = Buffer.from('AC1:a secret of the two').toString('base64');
  expect(request?.headers.authorization).toBe(`Basic ${credentials}`);
  expect(Object.fromEntries(new URLSearchParams(request?.body))).toEqual({
    To: '+420123456789',
    From: '+15550001',
    Body: 'Come home & close the window',
  });
});

test('the log driver writes the text, but no telephone number', async () => {
  const lines: object[] = [];
  const channel = await channelFor(
    { driver: 'log' },
    { ...silentLog, info: (fields) => lines.push(fields) },
  );
  await channel.send(message);
  expect(lines).toEqual([
    { event: 'notification.logged', notificationId: 7, text: 'Come home & close the window' },
  ]);
});

const replies: { reply: Reply; verdict: string }[] = [
  { reply: { status: 400 }, verdict: 'never' },
  { reply: { status: 404 }, verdict: 'never' },
  { reply: { status: 410 }, verdict: 'never' },
  { reply: { status: 302, headers: { Location: 'http://127.0.0.1:9/' } }, verdict: 'never' },
  { reply: { status: 401 }, verdict: 'again' },
  { reply: { status: 429 }, verdict: 'again' },
  { reply: { status: 500 }, verdict: 'again' },
  { reply: 'never', verdict: 'again' },
];

test.each(replies)('a reply of $reply.status means $verdict', async ({ reply, verdict }) => {
  const { base, received } = await startProvider([reply, reply]);
  const timeoutMs = reply === 'never' ? 300 : patientMs;
  for (const settings of [webhook(base, timeoutMs), rest(base, timeoutMs)]) {
    const channel = await channelFor(settings);
    await expect(channel.send(message)).rejects.toMatchObject({ verdict });
  }
  expect(received).toHaveLength(2);
});

test.each([
  [400, 'never', 'provider-refused'],
  [410, 'never', 'provider-refused'],
  [401, 'again', 'provider-login'],
  [429, 'again', 'provider-busy'],
  [500, 'again', 'provider-busy'],
])('for an answer of %i an account sees a reason of ours', async (status, verdict, reason) => {
  const { base } = await startProvider([{ status }]);
  const channel = await channelFor(webhook(base));
  await expect(channel.send(message)).rejects.toMatchObject({
    verdict,
    reason,
    message: expect.stringContaining('{"code":1}') as string,
  });
  expect(JSON.stringify(reasons[reason as Reason])).not.toContain('code');
});

test.each([200, 500])('an endless answer of %i is read up to 16 KiB', async (status) => {
  let sent = 0;
  const closed = Promise.withResolvers<void>();
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(status);
    const more = () => {
      while (response.write('x'.repeat(1_024))) sent += 1_024;
      response.once('drain', more);
    };
    response.once('close', closed.resolve);
    more();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => new Promise((resolve) => server.close(resolve)));
  const { port } = server.address() as AddressInfo;
  // Longer than the test, so only the limit on size can end it.
  const settings = { ...webhook(`http://127.0.0.1:${port}/`), timeoutMs: 60_000 };
  const channel = await channelFor(settings);
  const sending = channel.send(message);
  if (status === 200) await sending;
  else await expect(sending).rejects.toMatchObject({ verdict: 'again' });
  await closed.promise;
  // What the sockets in between buffer, and no more.
  expect(sent).toBeLessThan(16 * 1_048_576);
});

test('a provider that accepts the message and then stalls has accepted it', async () => {
  const server = createServer((request, response) => {
    request.resume();
    response.writeHead(200);
    response.write('{');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(async () => {
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  });
  const { port } = server.address() as AddressInfo;
  const channel = await channelFor(webhook(`http://127.0.0.1:${port}/`, 2_000));
  await channel.send(message);
});

test('connection refused: another attempt', async () => {
  const channel = await channelFor(webhook('http://127.0.0.1:1/'));
  await expect(channel.send(message)).rejects.toMatchObject({ verdict: 'again' });
});
