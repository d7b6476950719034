import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findFreePort } from '../../src/db/embedded/cluster.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { findProgram } from '../support/program.ts';
import { startServer } from '../support/server.ts';
import type { Server } from '../support/server.ts';
import { configuration, openApp } from '../journeys/app.ts';
import type { Registration } from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';
import { testService } from '../journeys/service.ts';
import type { TestService } from '../journeys/service.ts';

const program = findProgram('haproxy');

describe.skipIf(program === null)('HAProxy in front of MQTT', () => {
  let service: TestService;
  let haproxy: Server;
  const dir = makeTemporaryDir();

  beforeAll(async () => {
    service = await testService(
      {},
      {
        change: (config) => ({
          ...config,
          mqtt: { ...config.mqtt, trustedProxies: ['127.0.0.1'] },
        }),
      },
    );
    const port = await findFreePort();
    const file = join(dir, 'haproxy.cfg');
    writeFileSync(
      file,
      [
        'defaults',
        '  mode tcp',
        '  timeout connect 3s',
        '  timeout client 1m',
        '  timeout server 1m',
        'frontend mqtt',
        `  bind 127.0.0.1:${port}`,
        '  default_backend connectors',
        'backend connectors',
        `  server one 127.0.0.1:${service.mqttPort} send-proxy-v2 check inter 50ms`,
        '',
      ].join('\n'),
    );
    haproxy = await startServer(program ?? '', ['-f', file], port);
  });
  afterAll(async () => {
    await haproxy.kill();
    await service.close();
    rmSync(dir, { recursive: true, force: true });
  });

  it('a device is served through it, between its health checks', async () => {
    const app = await openApp(service.url);
    const registration = await app.call<Registration>('POST', '/v2/devices', configuration);
    const device = await connectDevice({ ...registration, port: haproxy.port });
    await device.subscribe('down/configuration');
    await device.receive('down/configuration');
    await device.publish('up/measurements', { sId: '0x01', val: 20 });
    const { measurements } = await app.call<{ measurements: unknown[] }>(
      'GET',
      `/v2/measurements/${registration.deviceAuthUuid}`,
    );
    expect(measurements).toHaveLength(1);
    await device.end();
  });
});
