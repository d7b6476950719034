import { execFile } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { call } from '../../bench/api.ts';
import type { ServiceProcess } from '../faults/service-process.ts';
import { faultsOf, judge } from '../faults/verdict.ts';
import { makeTemporaryDir } from '../harness/cluster.ts';
import { hasRedis } from '../harness/redis.ts';
import { configuration } from '../faults/messages.ts';
import { startRestLoad } from './rest-load.ts';
import { haproxyProgram, shippedConfig, startShippedHaproxy } from './shipped-haproxy.ts';
import type { ShippedHaproxy } from './shipped-haproxy.ts';
import { startInstallation } from './world.ts';
import type { Installation } from './world.ts';

const devices = 60;

/** The delay that the cluster file ships with. */
function shippedDelay(): string {
  const file = new URL('../../docker-compose.cluster.yml', import.meta.url);
  return /DRAIN_DELAY_MS: (\d+)/.exec(readFileSync(file, 'utf8'))?.[1] ?? 'none';
}

it.skipIf(haproxyProgram === null)('the shipped haproxy.cfg is understood', async () => {
  const checked = promisify(execFile)(haproxyProgram ?? '', ['-c', '-f', shippedConfig]);
  await expect(checked).resolves.toBeDefined();
});

describe.skipIf(haproxyProgram === null || !hasRedis)('a rolling restart behind HAProxy', () => {
  const dir = makeTemporaryDir();
  let installation: Installation;
  let haproxy: ShippedHaproxy;

  beforeAll(async () => {
    installation = await startInstallation({
      apis: 2,
      connectors: [1, 2].map((id) => ({
        kind: 'mqtt',
        id,
        name: `connector-${id}`,
        protocol: 'mqtt',
        host: '127.0.0.1',
        port: 1_883,
      })),
      settings: {
        mqtt: { trustedProxies: ['127.0.0.1'] },
        http: { trustedProxies: ['127.0.0.1'] },
      },
      variables: { DRAIN_DELAY_MS: shippedDelay() },
    });
    haproxy = await startShippedHaproxy(dir, installation);
  });
  afterAll(async () => {
    await haproxy.close();
    await installation.close();
    rmSync(dir, { recursive: true });
  });

  const isUp = async (name: string) => (await haproxy.servers())[name]?.status === 'UP';

  async function restart(service: ServiceProcess, name: string): Promise<void> {
    expect(await service.terminate()).toBe(0);
    await service.start();
    await expect.poll(() => isUp(name), { timeout: 10_000 }).toBe(true);
  }

  it(
    'fails no request, loses nothing and leaves no device away',
    { timeout: 180_000 },
    async () => {
      const { apis, connectors } = installation;
      const witnessed = await installation.startLoad({
        port: haproxy.mqttPort,
        devices,
        rate: 300,
      });
      const { load, accountToken: token } = witnessed;
      const body = configuration;
      const { deviceAuthUuid: uuid } = await call<{ deviceAuthUuid: string }>(
        haproxy.url,
        'POST',
        '/v2/devices',
        { token, body },
      );
      const rest = startRestLoad(haproxy.url, token, [
        { method: 'GET', path: '/v2/devices' },
        { method: 'GET', path: `/v2/measurements/${witnessed.devices[0]?.uuid}?limit=20` },
        { method: 'PUT', path: `/v2/devices/${uuid}/configuration`, body },
        { method: 'GET', path: '/v2/accounts' },
        // Not to be repeated by anybody, and not in need of it either.
        { method: 'POST', path: `/v2/devices/${uuid}/token` },
      ]);
      load.start();
      for (const [index, api] of apis.entries()) await restart(api, `api-${index + 1}`);
      for (const [index, one] of connectors.entries()) await restart(one, `connector-${index + 1}`);
      const figures = await rest.stop();
      const away = load.longestAway();
      expect(await load.stop(60_000)).toBe(true);
      const verdict = await judge(witnessed);
      const { answered, longestMs } = figures;
      console.log('rolling restart:', JSON.stringify({ answered, longestMs, away, verdict }));

      expect(figures.failures).toEqual([]);
      expect(answered).toBeGreaterThan(200);
      expect(Object.values(faultsOf(verdict)).every((count) => count === 0)).toBe(true);
      expect(verdict.acknowledged).toBeGreaterThan(1_000);
      expect(away.connectionMs).toBeGreaterThan(0);
      expect(away.connectionMs).toBeLessThan(5_000);
      expect(away.acknowledgementMs).toBeLessThan(5_000);
      for (const { sessions } of Object.values(await haproxy.servers()))
        expect(sessions).toBeGreaterThan(0);
    },
  );
});
