import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, type AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';
import type { Browser } from 'playwright-core';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { hasChromium, startChromium } from '../support/chromium.ts';
import { configuration, openApp, type App, type Registration } from './app.ts';
import { testService, type TestService } from './service.ts';

/** Pages of this origin may be devices; those of the other may not. */
let allowed: Server;
let stranger: Server;
let service: TestService;
let app: App;

const originOf = (server: Server) => `http://127.0.0.1:${(server.address() as AddressInfo).port}`;

async function serveAPage(): Promise<Server> {
  const server = createServer((_, response) =>
    response.setHeader('Content-Type', 'text/html').end('<!doctype html><title>A page</title>'),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server;
}

beforeAll(async () => {
  [allowed, stranger] = [await serveAPage(), await serveAPage()];
  const corsOrigins = [originOf(allowed)];
  service = await testService(
    {},
    { change: (config) => ({ ...config, http: { ...config.http, corsOrigins } }) },
  );
  app = await openApp(service.url);
});
afterAll(async () => {
  await service?.close();
  for (const server of [allowed, stranger]) {
    server?.closeAllConnections();
    server?.close();
  }
});

const addDevice = () => app.call<Registration>('POST', '/v2/devices', configuration);

describe.skipIf(!hasChromium)('a browser as a device', () => {
  let browser: Browser;
  beforeAll(async () => {
    browser = await startChromium();
  });
  afterAll(() => browser?.close());

  /** What a page of the origin can read of the service's answer, or the error that its browser reports. */
  async function postFrom(origin: string, { deviceAuthUuid, deviceAuthToken }: Registration) {
    const page = await browser.newPage();
    try {
      await page.goto(origin);
      return await page.evaluate(
        async ({ url, token }) => {
          const headers = { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' };
          const body = JSON.stringify({ sId: '0x01', val: 21.5 });
          try {
            const answer = await fetch(url, { method: 'POST', headers, body });
            return { status: answer.status, body: (await answer.json()) as object };
          } catch (error) {
            return { error: String(error) };
          }
        },
        { url: `${service.url}/devices/${deviceAuthUuid}/up/measurements`, token: deviceAuthToken },
      );
    } finally {
      await page.close();
    }
  }
  const stored = async ({ deviceAuthUuid }: Registration) =>
    (await app.call<{ measurements: object[] }>('GET', `/v2/measurements/${deviceAuthUuid}`))
      .measurements;

  test('a page of a configured other origin posts measurements, and reads that they are stored', async () => {
    const device = await addDevice();
    expect(await postFrom(originOf(allowed), device)).toMatchObject({
      status: 200,
      body: { stored: 1, rejected: [] },
    });
    expect(await stored(device)).toMatchObject([{ sId: '0x01', val: 21.5 }]);
  });

  test('a page of any other origin cannot post', async () => {
    const device = await addDevice();
    expect(await postFrom(originOf(stranger), device)).toEqual({
      error: 'TypeError: Failed to fetch',
    });
    expect(await stored(device)).toEqual([]);
  });
});

describe('a client that half-closes the connection after its request', () => {
  const dial = () =>
    connect({
      port: Number(new URL(service.url).port),
      host: '127.0.0.1',
      allowHalfOpen: true,
    });
  const requestFor = (path: string, token: string) =>
    `GET ${path} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`;

  test('gets the answer to its poll, long before the time it would have waited', async () => {
    const { deviceAuthUuid, deviceAuthToken } = await addDevice();
    const socket = dial();
    socket.end(requestFor(`/devices/${deviceAuthUuid}/down?wait=60&topics=time`, deviceAuthToken));
    const answer = await text(socket);
    expect(answer).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(answer).toContain('"messages":[]');
  });

  test('has its stream ended, which would otherwise keep its place', async () => {
    const key = { name: 'a wall', scopes: ['data:read'] };
    const made = await app.call<{ key: string }>('POST', '/v2/accounts/keys', key);
    const used = async () => {
      type Usage = { usage: { quota: string; used: number }[] };
      const { usage } = await app.call<Usage>('GET', '/v2/accounts/usage');
      return usage.find(({ quota }) => quota === 'streams')?.used;
    };
    for (const path of ['/v2/events/stream', '/v2/measurements/stream']) {
      const socket = dial();
      socket.write(requestFor(path, made.key));
      const [head] = (await once(socket, 'data')) as [Buffer];
      expect(String(head), path).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
      expect(await used()).toBe(1);
      socket.end();
      await text(socket);
      await expect.poll(used, { timeout: 60_000 }).toBe(0);
    }
  });
});
