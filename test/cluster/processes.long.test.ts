import { connectAsync } from 'mqtt';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { call, registerAccount } from '../../bench/api.ts';
import { faultsOf, judge, noFaults } from '../faults/verdict.ts';
import type { ServiceProcess } from '../faults/service-process.ts';
import { hasRedis } from '../support/redis.ts';
import { configuration, thresholdPurpose } from '../journeys/app.ts';
import type { Registration } from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';
import { startBalancer } from './balancer.ts';
import type { Balancer } from './balancer.ts';
import { startInstallation } from './world.ts';
import type { Installation } from './world.ts';

/** For a long run by hand: CLUSTER_KILLS=30 npm run test:nightly -- cluster/processes */
const kills = Number(process.env['CLUSTER_KILLS'] ?? 2);

describe.skipIf(!hasRedis)('two API processes and three connectors', () => {
  let balancer: Balancer;
  let installation: Installation;
  let first: ServiceProcess;
  let second: ServiceProcess;
  let token: string;

  beforeAll(async () => {
    balancer = await startBalancer();
    installation = await startInstallation({
      apis: 2,
      connectors: [1, 2, 3].map((id) => ({
        kind: 'mqtt',
        id,
        name: `connector-${id}`,
        protocol: 'mqtt',
        host: `connector-${id}.example.com`,
        port: 1_883,
      })),
      settings: {
        mqtt: { trustedProxies: [balancer.address] },
        notifications: { webhooks: { allowPrivateAddresses: true } },
      },
    });
    balancer.targets.push(...installation.connectors.map(({ mqttPort }) => mqttPort));
    [first, second] = installation.apis as [ServiceProcess, ServiceProcess];
    ({ token } = await registerAccount(first.url));
  });
  afterAll(async () => {
    await balancer.close();
    await installation.close();
  });

  const register = (service = first) =>
    call<Registration>(service.url, 'POST', '/v2/devices', { token, body: configuration });
  const connectorPort = (index: number) => installation.connectors[index]?.mqttPort ?? 0;
  /** Connects to a connector that the test chooses, because any of them accepts any device. */
  const connectTo = (registration: Registration, index: number) =>
    connectDevice({ ...registration, host: '127.0.0.1', port: connectorPort(index) });

  it('spread devices over the connectors, and name the right one', async () => {
    const registrations = await Promise.all(
      Array.from({ length: 40 }, (_, index) => register(index % 2 ? first : second)),
    );
    for (const { connectorId, connectorName, host, port } of registrations) {
      const name = `connector-${connectorId}`;
      expect({ connectorName, host, port }).toEqual({
        connectorName: name,
        host: `${name}.example.com`,
        port: 1_883,
      });
    }
    expect(new Set(registrations.map(({ connectorId }) => connectorId)).size).toBe(3);
  });

  it('hand a profile over on whichever connector the device is', async () => {
    const registration = await register();
    for (const index of [0, 1, 2]) {
      const device = await connectTo(registration, index);
      await device.subscribe('down/profile');
      const { pId } = await call<{ pId: string }>(second.url, 'POST', '/v2/devices/profile', {
        token,
        body: {
          deviceAuthUuids: [registration.deviceAuthUuid],
          purposes: [thresholdPurpose(index + 1, 20)],
        },
      });
      const find = () => device.received.some(({ payload }) => payload['pId'] === pId);
      await expect.poll(find, { interval: 10 }).toBe(true);
      await device.publish('up/profile', { pId, state: 'current' });
      await device.end();
    }
  });

  it('close a session on the connector that it left', async () => {
    const { deviceAuthUuid: username, deviceAuthToken: password } = await register();
    const options = { username, password, clientId: 'the only one', reconnectPeriod: 0 };
    const before = await connectAsync(`mqtt://127.0.0.1:${connectorPort(0)}`, options);
    const other = await connectAsync(`mqtt://127.0.0.1:${connectorPort(0)}`, {
      ...options,
      clientId: 'another one',
    });
    const after = await connectAsync(`mqtt://127.0.0.1:${connectorPort(1)}`, options);
    await expect.poll(() => before.connected).toBe(false);
    expect(after.connected).toBe(true);
    expect(other.connected).toBe(true);
    await Promise.all([after.endAsync(), other.endAsync()]);
  });

  it('stream in one process what another stores, until the account ends it in the other', async () => {
    const { deviceAuthUuid: uuid, ...registration } = await register();
    const device = await connectTo({ ...registration, deviceAuthUuid: uuid }, 2);
    await call(first.url, 'POST', '/v2/devices/profile', {
      token,
      body: { deviceAuthUuids: [uuid], purposes: [thresholdPurpose(4, 20)] },
    });
    const response = await fetch(`${second.url}/v2/events/${uuid}/stream`, {
      headers: { Authorization: `Bearer ${token}` },
    });
    let text = '';
    const reading = (async () => {
      for await (const chunk of response.body ?? []) text += Buffer.from(chunk).toString();
    })().catch(() => undefined);
    await device.publish('up/measurements', { sId: '0x01', val: 21 });
    await expect.poll(() => text).toContain('"type":"sense"');

    const listed = await call<{ sessions: { id: string; current: boolean }[] }>(
      first.url,
      'GET',
      '/v2/accounts/sessions',
      { token },
    );
    const own = listed.sessions.find(({ current }) => current)?.id ?? '';
    await call(first.url, 'DELETE', `/v2/accounts/sessions/${own}`, { token });
    await reading;
    const refused = await fetch(`${second.url}/v2/devices`, {
      headers: { Authorization: `Bearer ${token}` },
    });
    expect(refused.status).toBe(401);
    ({ token } = await registerAccount(first.url));
    await device.end();
  });

  it('close a removed device’s connections everywhere', async () => {
    const registration = await register();
    const devices = [await connectTo(registration, 0), await connectTo(registration, 2)];
    await call(second.url, 'DELETE', `/v2/devices/${registration.deviceAuthUuid}`, { token });
    for (const { client } of devices) await expect.poll(() => client.connected).toBe(false);
  });

  it(
    'lose nothing, not even an alarm, while connectors are killed and devices move on',
    { timeout: 60_000 + kills * 30_000 },
    async () => {
      const witnessed = await installation.startLoad({
        port: balancer.port,
        devices: 100,
        rate: 800,
        watch: true,
      });
      const { load } = witnessed;
      load.start();
      const runFor = async (acknowledgements: number) => {
        const goal = load.counts().acknowledged + acknowledgements;
        while (load.counts().acknowledged < goal) await load.nextAck();
      };
      for (let time = 0; time < kills; time++) {
        const connector = installation.connectors[time % 3] as ServiceProcess;
        await runFor(300);
        await connector.kill();
        await load.online(100);
        await runFor(300);
        await connector.start();
        // The devices return to all three while the connectors they left still have their connections.
        balancer.abandon();
        await load.online(100);
      }
      await runFor(300);
      expect(await load.stop(60_000)).toBe(true);
      const verdict = await judge(witnessed);
      expect(faultsOf(verdict)).toEqual(noFaults);
      expect(verdict.acknowledged).toBeGreaterThan(1_000);
      expect(verdict.alarms).toBeGreaterThan(0);
      for (const target of balancer.targets) expect(balancer.count(target)).toBeGreaterThan(0);
    },
  );
});
