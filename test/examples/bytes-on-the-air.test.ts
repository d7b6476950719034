// Measures the table of docs/devices-reference.md again, with the running service.
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { findFreePort } from '../../src/db/embedded/cluster.ts';
import { startProxy, type Proxy } from '../faults/proxy.ts';
import { openApp, type App, type Registration } from '../journeys/app.ts';
import { projectDir } from '../journeys/process.ts';
import { testService, type TestService } from '../journeys/service.ts';
import { hasOpenssl, makeCertificate } from '../support/certificate.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { findProgram } from '../support/program.ts';
import { startServer } from '../support/server.ts';
import { measureHttp, measureMqtt, type Bytes, type Credential } from './ways.ts';

const haproxy = findProgram('haproxy');
const page = readFileSync(join(projectDir, 'docs/devices-reference.md'), 'utf8');
const rows = page.matchAll(/^\| ((?:MQTT|HTTPS?)\b[^|]*?) +\|((?: +[\d,]+ +\|){4})$/gm);
/** Each protocol with its columns: bytes to the service, bytes from it, packets, and the total with headers. */
const documented = new Map(
  [...rows].map(([, way = '', columns = '']) => [
    way,
    columns.split('|').map((text) => Number(text.replace(',', ''))),
  ]),
);
const headerBytes = 40;

/** Allows for signatures and tickets, which differ by some bytes from one connection to the next. */
function expectDocumented(way: string, { toService, fromService }: Bytes): void {
  const [to = 0, from = 0, packets = 0, all = 0] = documented.get(way) ?? [];
  const told = `docs/devices-reference.md: | ${way} | ${toService} | ${fromService} |`;
  const nearly = (bytes: number) => Math.max(2, bytes * 0.05);
  expect.soft(Math.abs(to - toService), told).toBeLessThanOrEqual(nearly(toService));
  expect.soft(Math.abs(from - fromService), told).toBeLessThanOrEqual(nearly(fromService));
  expect.soft(all, way).toBe(to + from + packets * headerBytes);
}

describe('bytes for one value', () => {
  let service: TestService;
  let app: App;
  let device: Credential;
  const directory = makeTemporaryDir();
  const certFile = join(directory, 'certificate.pem');
  const keyFile = join(directory, 'key.pem');
  let mqttsPort = 0;
  const proxies: Proxy[] = [];
  const through = async (port: number) => {
    const proxy = await startProxy(port);
    proxies.push(proxy);
    return proxy;
  };
  const httpPort = () => Number(new URL(service.url).port);

  beforeAll(async () => {
    if (hasOpenssl) {
      await makeCertificate('sensorium.example', { certFile, keyFile });
      mqttsPort = await findFreePort();
    }
    const tls = { MQTTS_PORT: String(mqttsPort), TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile };
    service = await testService(hasOpenssl ? tls : {});
    app = await openApp(service.url);
    const { deviceAuthUuid: uuid, deviceAuthToken: token } = await app.call<Registration>(
      'POST',
      '/v2/devices',
      { device: { name: 'Desk' }, module: [{ moduleId: 'air', senses: [{ sId: '0x10' }] }] },
    );
    device = { uuid, token };
  });
  afterAll(async () => {
    for (const proxy of proxies) await proxy.close();
    await service?.close();
  });

  let count = 0;
  const value = () => `{"sId":"0x10","val":21.5,"ts":${Date.now() - 1_000 + (count += 1)}}`;
  const hundred = () => `[${Array.from({ length: 100 }, value).join()}]`;

  test('the table has all protocols, and no others', () =>
    expect([...documented.keys()]).toEqual([
      'MQTT, standing connection',
      'MQTT over TLS, standing connection',
      'HTTP, kept connection',
      'HTTPS, kept connection',
      'MQTT, a connection for each value',
      'HTTP, a connection for each value',
      'MQTT over TLS, a connection for each value',
      'HTTPS, a connection for each value',
      'MQTT, 100 values in a message',
      'HTTP, 100 values in a request',
    ]));

  test('MQTT', async () => {
    const way = { proxy: await through(service.mqttPort), tls: false };
    const { standing, connecting } = await measureMqtt(way, device, value);
    expectDocumented('MQTT, standing connection', standing);
    expectDocumented('MQTT, a connection for each value', connecting);
    const many = await measureMqtt(way, device, hundred);
    expectDocumented('MQTT, 100 values in a message', many.standing);
  });

  test('HTTP', async () => {
    const way = { proxy: await through(httpPort()), tls: false };
    const { standing, connecting } = await measureHttp(way, device, value);
    expectDocumented('HTTP, kept connection', standing);
    expectDocumented('HTTP, a connection for each value', connecting);
    const many = await measureHttp(way, device, hundred);
    expectDocumented('HTTP, 100 values in a request', many.standing);
  });

  test.skipIf(!hasOpenssl)('MQTT over TLS', async () => {
    const way = { proxy: await through(mqttsPort), tls: true };
    const { standing, connecting } = await measureMqtt(way, device, value);
    expectDocumented('MQTT over TLS, standing connection', standing);
    expectDocumented('MQTT over TLS, a connection for each value', connecting);
  });

  test.skipIf(!hasOpenssl || haproxy === null)('HTTPS, by HAProxy', async () => {
    const port = await findFreePort();
    const both = join(directory, 'both.pem');
    writeFileSync(both, readFileSync(certFile, 'utf8') + readFileSync(keyFile, 'utf8'));
    const file = join(directory, 'haproxy.cfg');
    writeFileSync(file, haproxyConfig({ port, target: httpPort(), certificate: both }));
    const server = await startServer(haproxy ?? '', ['-f', file], port);
    try {
      const way = { proxy: await through(port), tls: true };
      const { standing, connecting } = await measureHttp(way, device, value);
      expectDocumented('HTTPS, kept connection', standing);
      expectDocumented('HTTPS, a connection for each value', connecting);
    } finally {
      await server.kill();
    }
  });
});

const haproxyConfig = (at: { port: number; target: number; certificate: string }) => `
defaults
  mode http
  timeout connect 3s
  timeout client 2m
  timeout server 2m
frontend https
  bind 127.0.0.1:${at.port} ssl crt ${at.certificate}
  default_backend uplinks
backend uplinks
  server connector-http 127.0.0.1:${at.target}
`;
