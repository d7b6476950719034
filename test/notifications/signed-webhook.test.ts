import { createHmac } from 'node:crypto';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { createServer as createHttps } from 'node:https';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, expect, test } from 'vitest';
import type { LookupAll } from '../../src/notifications/channels/channel.ts';
import { hookDriver } from '../../src/notifications/channels/webhook.ts';
import { hasOpenssl, makeCertificate } from '../support/certificate.ts';
import { startHookReceiver, type HookReply } from '../support/hook-receiver.ts';

const closing: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const secret = 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw';
const clock = () => 1_614_265_330_000;

async function givenReceiver(reply?: () => HookReply) {
  const receiver = await startHookReceiver(reply);
  closing.push(receiver.close);
  return receiver;
}

const messageTo = (url: string, secrets = [secret]) => ({
  id: 7,
  url,
  secrets,
  payload: { type: 'test' as const, timestamp: 1, data: { title: 'Käse', body: '' } },
});

const anywhere = { isPrivateAllowed: true, timeoutMs: 5_000 };
const publicOnly = { isPrivateAllowed: false, timeoutMs: 5_000 };

test('a message is signed so that a receiver can verify it, with each secret', async () => {
  const { url, request } = await givenReceiver();
  const older = `whsec_${Buffer.from('the secret before this one').toString('base64')}`;
  await hookDriver(anywhere, clock).send(messageTo(`${url}/hook`, [secret, older]));
  const { headers, body } = await request();
  expect(headers).toMatchObject({
    'content-type': 'application/json',
    'webhook-id': 'msg_7',
    'webhook-timestamp': '1614265330',
  });
  expect(JSON.parse(body)).toEqual(messageTo('').payload);
  const expected = [secret, older].map((one) => {
    const key = Buffer.from(one.slice('whsec_'.length), 'base64');
    const mac = createHmac('sha256', key).update(`msg_7.1614265330.${body}`).digest('base64');
    return `v1,${mac}`;
  });
  expect(headers['webhook-signature']).toBe(expected.join(' '));
});

test.each<[HookReply, string, string]>([
  [{ status: 500 }, 'again', 'receiver-refused'],
  [{ status: 404 }, 'again', 'receiver-refused'],
  [{ status: 410 }, 'never', 'receiver-gone'],
  [{ status: 301, headers: { location: 'http://127.0.0.1:1/' } }, 'never', 'receiver-moved'],
  [{ status: 308, headers: { location: 'http://127.0.0.1:1/' } }, 'never', 'receiver-moved'],
  [{ status: 302, headers: { location: 'http://127.0.0.1:1/' } }, 'again', 'receiver-refused'],
  [{ status: 307, headers: { location: 'http://127.0.0.1:1/' } }, 'again', 'receiver-refused'],
])('%j ends as %s', async (reply, verdict, reason) => {
  const { url, received } = await givenReceiver(() => reply);
  await expect(hookDriver(anywhere, clock).send(messageTo(url))).rejects.toMatchObject({
    verdict,
    reason,
  });
  expect(received).toHaveLength(1);
});

test.each([
  ['120', 120_000],
  [new Date(clock() + 90_000).toUTCString(), 90_000],
  [new Date(clock() - 90_000).toUTCString(), 0],
  ['soon', undefined],
])('Retry-After: %s', async (text, retryAfterMs) => {
  const headers = { 'retry-after': text };
  const { url } = await givenReceiver(() => ({ status: 429, headers }));
  await expect(hookDriver(anywhere, clock).send(messageTo(url))).rejects.toMatchObject({
    verdict: 'again',
    reason: 'receiver-refused',
    retryAfterMs,
  });
});

test.skipIf(!hasOpenssl)('an untrusted certificate is reported as tls-failed', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'hook-'));
  const files = { certFile: join(dir, 'cert.pem'), keyFile: join(dir, 'key.pem') };
  await makeCertificate('receiver.example', files);
  const [cert, key] = await Promise.all([readFile(files.certFile), readFile(files.keyFile)]);
  const server = createHttps({ cert, key }, (_, response) => void response.end());
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(async () => {
    await new Promise((resolve) => server.close(resolve));
    await rm(dir, { recursive: true });
  });
  const { port } = server.address() as AddressInfo;
  await expect(
    hookDriver(anywhere, clock).send(messageTo(`https://127.0.0.1:${port}/`)),
  ).rejects.toMatchObject({ verdict: 'again', reason: 'tls-failed' });
});

test.each([
  ['no HTTP', 'SSH-2.0-OpenSSH_9.2\r\n'],
  ['two lengths', 'HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n'],
  ['20 KB of headers', `HTTP/1.1 200 OK\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`],
])('an unreadable answer is reported as such: %s', async (_, answer) => {
  const server = createServer((socket) => {
    socket.on('error', () => undefined).resume();
    socket.end(answer);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  closing.push(() => new Promise((resolve) => server.close(resolve)));
  const { port } = server.address() as AddressInfo;
  await expect(
    hookDriver(anywhere, clock).send(messageTo(`http://127.0.0.1:${port}/`)),
  ).rejects.toMatchObject({ verdict: 'again', reason: 'bad-answer' });
});

test('a receiver that never answers, or never stops answering, is given up in time', async () => {
  const silent = await givenReceiver(() => 'never');
  const driver = hookDriver({ ...anywhere, timeoutMs: 200 }, clock);
  const late = { verdict: 'again', reason: 'no-answer' };
  await expect(driver.send(messageTo(silent.url))).rejects.toMatchObject(late);
  const endless = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.write('HTTP/1.1 200 OK\r\n');
    const timer = setInterval(() => socket.write('X-More: more\r\n'), 20);
    socket.on('close', () => clearInterval(timer));
  });
  await new Promise<void>((resolve) => endless.listen(0, '127.0.0.1', resolve));
  closing.push(() => new Promise((resolve) => endless.close(resolve)));
  const { port } = endless.address() as AddressInfo;
  await expect(driver.send(messageTo(`http://127.0.0.1:${port}`))).rejects.toMatchObject(late);
});

test('a host name is checked once, by all of its addresses', async () => {
  const { url, received } = await givenReceiver();
  const { port } = new URL(url);
  const named = `http://receiver.example:${port}/`;
  const answers = [
    [{ address: '127.0.0.1', family: 4 }],
    [
      { address: '1.1.1.1', family: 4 },
      { address: '::ffff:127.0.0.1', family: 6 },
    ],
  ];
  for (const addresses of answers) {
    const lookupAll: LookupAll = (_, callback) => callback(null, addresses);
    const driver = hookDriver({ ...publicOnly, lookupAll }, clock);
    await expect(driver.send(messageTo(named))).rejects.toMatchObject({
      verdict: 'never',
      reason: 'address-refused',
    });
  }
  expect(received).toEqual([]);
});

test('the connection goes to the checked address, whatever the name resolves to afterwards', async () => {
  const { url, received } = await givenReceiver();
  const asked: string[] = [];
  const lookupAll: LookupAll = (hostname, callback) => {
    asked.push(hostname);
    callback(null, [{ address: '127.0.0.1', family: 4 }]);
  };
  const driver = hookDriver({ ...anywhere, lookupAll }, clock);
  await driver.send(messageTo(`http://receiver.example:${new URL(url).port}/`));
  expect(asked).toEqual(['receiver.example']);
  expect(received[0]?.headers.host).toBe(`receiver.example:${new URL(url).port}`);
});

test.each([
  'http://127.0.0.1:9/',
  'http://[::1]:9/',
  'http://[64:ff9b::7f00:1]/',
  'http://[::ffff:0:7f00:1]/',
])('the literal %s is refused even if it was stored before', async (url) => {
  await expect(hookDriver(publicOnly, clock).send(messageTo(url))).rejects.toMatchObject({
    verdict: 'never',
    reason: 'address-refused',
  });
});
