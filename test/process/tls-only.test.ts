import { rmSync } from 'node:fs';
import { connect } from 'node:net';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { connectDevice } from '../journeys/device.ts';
import { findFreePort } from '../../src/db/embedded/cluster.ts';
import { openApp, type Registration } from '../journeys/app.ts';
import { runProgram, type Running } from '../journeys/process.ts';
import { hasOpenssl, makeCertificate } from '../support/certificate.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';

describe.skipIf(!hasOpenssl)('a service without plain MQTT', () => {
  const dir = makeTemporaryDir();
  const files = { certFile: join(dir, 'crt.pem'), keyFile: join(dir, 'key.pem') };
  let database: TestDatabase;
  let service: Running;
  let ready: { http: { port: number }; mqtts: { port: number }; mqtt?: object };
  let metricsPort: number;
  beforeAll(async () => {
    database = await testDatabase();
    metricsPort = await findFreePort();
    // It expires in two days.
    await makeCertificate('sensors.example', files);
    service = runProgram(process.execPath, ['src/main.ts'], {
      env: {
        DATABASE_URL: database.url,
        SECRET: 'a secret for tests that is long enough to be one',
        HTTP_HOST: '127.0.0.1',
        HTTP_PORT: '0',
        MQTT_HOST: '127.0.0.1',
        MQTT_PORT: 'off',
        MQTTS_PORT: '0',
        TLS_CERT_FILE: files.certFile,
        TLS_KEY_FILE: files.keyFile,
        METRICS_PORT: String(metricsPort),
        PUBLIC_HOST: '127.0.0.1',
      },
    });
    const [line] = await service.printed(/^.*"Ready\.".*$/m);
    ready = JSON.parse(line) as typeof ready;
  });
  afterAll(async () => {
    service.child.kill('SIGTERM');
    await service.ended();
    await database.drop();
    rmSync(dir, { recursive: true });
  });

  test('listens on TLS only, and gives devices that address when they are registered', async () => {
    expect(ready.mqtt).toBeUndefined();
    const app = await openApp(`http://127.0.0.1:${ready.http.port}`);
    const registered = await app.call<Registration>('POST', '/v2/devices', {
      device: {},
      module: [{ moduleId: 'm', senses: [{ sId: '0x1' }] }],
    });
    expect(registered).toMatchObject({
      protocol: 'mqtts',
      host: '127.0.0.1',
      port: ready.mqtts.port,
    });
    const device = await connectDevice(registered);
    await device.publish('up/measurements', { sId: '0x1', val: 1 });
    await device.end();
    const plain = connect({ port: 1883, host: '127.0.0.1' });
    await expect(
      new Promise((resolve, reject) => plain.on('connect', resolve).on('error', reject)),
    ).rejects.toMatchObject({ code: 'ECONNREFUSED' });
  });

  test('reports in the log and metrics that its certificate expires soon', async () => {
    expect(service.stdout()).toMatch(
      /"certificate\.ends".*The certificate of MQTT over TLS expires in 1 days/,
    );
    const text = await (await fetch(`http://127.0.0.1:${metricsPort}/metrics`)).text();
    const [, seconds] =
      /^mqtt_certificate_expires_timestamp_seconds\{protocol="mqtts"\} (\S+)$/m.exec(text) ?? [];
    const days = (Number(seconds) - Date.now() / 1_000) / 86_400;
    expect(Math.round(days)).toBe(2);
  });
});
