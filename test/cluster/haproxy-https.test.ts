import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { request } from 'node:https';
import { join } from 'node:path';
import { connectAsync } from 'mqtt';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findFreePort } from '../../src/db/embedded/cluster.ts';
import { configuration, openApp, type Registration } from '../journeys/app.ts';
import { testService, withConsole, type TestService } from '../journeys/service.ts';
import { hasOpenssl, makeCertificate } from '../support/certificate.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { findProgram } from '../support/program.ts';
import { startServer, type Server } from '../support/server.ts';

const program = findProgram('haproxy');
const shipped = new URL('../../config/haproxy-https.cfg', import.meta.url).pathname;

describe.skipIf(program === null || !hasOpenssl)('HTTPS with config/haproxy-https.cfg', () => {
  let service: TestService;
  let haproxy: Server;
  let plainPort = 0;
  const dir = makeTemporaryDir();

  beforeAll(async () => {
    service = await testService(
      {},
      {
        change: (config) =>
          withConsole({ ...config, http: { ...config.http, trustedProxies: ['127.0.0.1'] } }),
      },
    );
    plainPort = await findFreePort();
    const port = await findFreePort();
    const files = { certFile: join(dir, 'cert.pem'), keyFile: join(dir, 'key.pem') };
    await makeCertificate('localhost', files);
    const pem = join(dir, 'sensorium.pem');
    writeFileSync(pem, readFileSync(files.certFile, 'utf8') + readFileSync(files.keyFile, 'utf8'));
    let config = readFileSync(shipped, 'utf8');
    for (const [from, to] of [
      ['bind :80\n', `bind 127.0.0.1:${plainPort}\n`],
      ['bind :443 ', `bind 127.0.0.1:${port} `],
      ['/etc/haproxy/sensorium.pem', pem],
      ['127.0.0.1:8080', new URL(service.url).host],
      ['maxconn 20000', 'maxconn 100'],
    ] as const) {
      expect(config).toContain(from);
      config = config.replace(from, to);
    }
    const file = join(dir, 'haproxy.cfg');
    writeFileSync(file, config);
    haproxy = await startServer(program ?? '', ['-f', file], port);
  });
  afterAll(async () => {
    await haproxy?.kill();
    await service?.close();
    rmSync(dir, { recursive: true, force: true });
  });

  type Sent = { method?: string; headers?: Record<string, string>; body?: unknown };
  async function ask(path: string, { method = 'GET', headers = {}, body }: Sent = {}) {
    const text = body === undefined ? '' : JSON.stringify(body);
    const { promise, resolve, reject } = Promise.withResolvers<{
      status: number | undefined;
      headers: Record<string, unknown>;
      body: Record<string, unknown>;
    }>();
    const json =
      text === '' ? {} : { 'Content-Type': 'application/json', 'Content-Length': text.length };
    request(
      {
        port: haproxy.port,
        path,
        method,
        headers: { ...json, ...headers },
        rejectUnauthorized: false,
      },
      (response) => {
        let said = '';
        response.on('data', (chunk) => (said += String(chunk)));
        response.on('end', () =>
          resolve({
            status: response.statusCode,
            headers: response.headers,
            body: said.startsWith('{') ? (JSON.parse(said) as Record<string, unknown>) : {},
          }),
        );
      },
    )
      .on('error', reject)
      .end(text);
    return promise;
  }

  it('plain HTTP is redirected to HTTPS', async () => {
    const { status, headers } = await fetch(`http://127.0.0.1:${plainPort}/console/`, {
      redirect: 'manual',
    });
    expect([status, headers.get('location')]).toEqual([308, expect.stringMatching(/^https:/)]);
  });

  it('the console signs in with a Secure cookie, at the origin that the browser names', async () => {
    const person = { email: 'ada@example.com', password: 'a password of hers' };
    expect((await ask('/v2/accounts', { method: 'POST', body: person })).status).toBe(200);
    const origin = `https://localhost:${haproxy.port}`;
    const { status, headers } = await ask('/console/session', {
      method: 'POST',
      headers: { Origin: origin, Host: `localhost:${haproxy.port}` },
      body: person,
    });
    expect(status).toBe(200);
    expect(String(headers['set-cookie'])).toMatch(/; Secure/);
    expect(headers['strict-transport-security']).toBe('max-age=31536000');
  });

  it('devices send over HTTPS, and MQTT over a WebSocket', async () => {
    const app = await openApp(service.url);
    const { deviceAuthUuid: uuid, deviceAuthToken: token } = await app.call<Registration>(
      'POST',
      '/v2/devices',
      configuration,
    );
    const posted = await ask(`/devices/${uuid}/up/measurements`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}` },
      body: { sId: '0x01', val: 20 },
    });
    expect([posted.status, posted.body['stored']]).toEqual([200, 1]);
    const client = await connectAsync(`wss://127.0.0.1:${haproxy.port}/mqtt`, {
      username: uuid,
      password: token,
      rejectUnauthorized: false,
      reconnectPeriod: 0,
    });
    const payload = JSON.stringify({ sId: '0x01', val: 21 });
    await client.publishAsync(`devices/${uuid}/up/measurements`, payload, { qos: 1 });
    await client.endAsync();
    const { measurements } = await app.call<{ measurements: unknown[] }>(
      'GET',
      `/v2/measurements/${uuid}`,
    );
    expect(measurements).toHaveLength(2);
  });
});
