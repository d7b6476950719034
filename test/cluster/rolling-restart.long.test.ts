import { execFile } from 'node:child_process';
import { readFileSync, rmSync } from 'node:fs';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { call } from '../../bench/api.ts';
import { configuration } from '../faults/messages.ts';
import type { ServiceProcess } from '../faults/service-process.ts';
import { faultsOf, judge } from '../faults/verdict.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { hasRedis } from '../support/redis.ts';
import type { Registration } from '../journeys/app.ts';
import { startRestLoad } from './rest-load.ts';
import type { RestRequest } from './rest-load.ts';
import { haproxyProgram, shippedConfig, startShippedHaproxy } from './shipped-haproxy.ts';
import type { ShippedHaproxy } from './shipped-haproxy.ts';
import { startInstallation } from './world.ts';
import type { Installation } from './world.ts';

const devices = 60;

/** The delay in the shipped cluster file. */
function shippedDelay(): string {
  const file = new URL('../../docker-compose.cluster.yml', import.meta.url);
  return /DRAIN_DELAY_MS: (\d+)/.exec(readFileSync(file, 'utf8'))?.[1] ?? 'none';
}

it.skipIf(haproxyProgram === null)('the shipped haproxy.cfg is valid', async () => {
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
    await installation.close();
    await haproxy.close();
    rmSync(dir, { recursive: true });
  });

  const statusOf = async (name: string) => (await haproxy.servers())[name]?.status;

  /** `leaving`: the status that HAProxy must see before the service drains. */
  async function restart(service: ServiceProcess, name: string, leaving: string): Promise<void> {
    const ended = service.terminate();
    await expect.poll(() => statusOf(name), { timeout: Number(shippedDelay()) }).toBe(leaving);
    expect(await ended).toBe(0);
    await service.start();
    await expect.poll(() => statusOf(name), { timeout: 60_000 }).toBe('UP');
  }

  /** The requests that clients repeat. The last one must not be sent again by anybody. */
  async function listRequests(token: string): Promise<RestRequest[]> {
    const body = configuration;
    const registered = call<Registration>(haproxy.url, 'POST', '/v2/devices', { token, body });
    const path = `/v2/devices/${(await registered).deviceAuthUuid}`;
    return [
      { method: 'GET', path: '/v2/devices' },
      { method: 'GET', path: '/v2/accounts' },
      { method: 'PUT', path: `${path}/configuration`, body },
      { method: 'GET', path: `${path}/configuration` },
      { method: 'POST', path: `${path}/token` },
    ];
  }

  it('fails no request, loses nothing, leaves no device offline', async () => {
    const witnessed = await installation.startLoad({ port: haproxy.mqttPort, devices, rate: 300 });
    const { load, accountToken: token } = witnessed;
    const rest = startRestLoad(haproxy.url, token, await listRequests(token));
    load.start();
    for (const [index, api] of installation.apis.entries())
      await restart(api, `api-${index + 1}`, 'DOWN');
    for (const [index, connector] of installation.connectors.entries())
      await restart(connector, `connector-${index + 1}`, 'NOLB');
    const { failures, ...figures } = await rest.stop();
    const away = load.longestAway();
    expect(await load.stop(60_000)).toBe(true);
    const verdict = await judge(witnessed);
    console.log('rolling restart:', JSON.stringify({ ...figures, away, verdict }));

    expect(failures).toEqual([]);
    expect(figures.answered).toBeGreaterThan(200);
    const faults = Object.entries(faultsOf(verdict)).filter(([, count]) => count > 0);
    expect(faults).toEqual([]);
    expect(verdict.acknowledged).toBeGreaterThan(1_000);
    expect(away.connectionMs).toBeGreaterThan(0);
    expect(away.connectionMs).toBeLessThan(5_000);
    expect(away.acknowledgementMs).toBeLessThan(5_000);
    for (const [name, { sessions, retries }] of Object.entries(await haproxy.servers())) {
      // The load uses no WebSocket.
      if (name.startsWith('ws-')) continue;
      expect(sessions).toBeGreaterThan(0);
      // Each one announced in time that it leaves, so nothing had to be retried.
      expect(retries).toBe(0);
    }
  });
});
