import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { connectAsync } from 'mqtt';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { makeTemporaryDir } from '../support/cluster.ts';
import { hasMosquitto, startMosquitto } from '../support/mosquitto.ts';
import type { Mosquitto } from '../support/mosquitto.ts';
import { configuration, openApp, thresholdPurpose } from '../journeys/app.ts';
import type { App, Registration } from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';
import { testService } from '../journeys/service.ts';
import type { TestService } from '../journeys/service.ts';
import { expectToldOnce } from '../journeys/unknown-member.ts';
import { bridgeTo, endSession, findHolder } from './broker.ts';

describe.skipIf(!hasMosquitto)('a device behind Mosquitto, where one bridge stands by', () => {
  let broker: Mosquitto;
  let service: TestService;
  let app: App;
  const dir = makeTemporaryDir();

  beforeAll(async () => {
    const aclFile = join(dir, 'acl');
    writeFileSync(
      aclFile,
      'pattern write devices/%u/up/#\npattern read devices/%u/down/#\n' +
        'user sensorium-bridge\ntopic read devices/+/up/#\ntopic write devices/+/down/#\n',
    );
    broker = await startMosquitto([
      'allow_anonymous true',
      'use_username_as_clientid true',
      // Fewer than are handed over at once below. More would end the connection.
      'max_inflight_messages 5',
      `acl_file ${aclFile}`,
    ]);
    const [first, second] = [bridgeTo(broker, 2, null), bridgeTo(broker, 3, null)];
    service = await testService(
      {},
      { change: (config) => ({ ...config, connectors: [first, second] }) },
    );
    app = await openApp(service.url);
  });
  afterAll(async () => {
    await service.close();
    await broker.remove();
    rmSync(dir, { recursive: true, force: true });
  });

  const register = () => app.call<Registration>('POST', '/v2/devices', configuration);

  it('gets the broker’s address', async () => {
    const { connectorId, connectorName, host, port, protocol } = await register();
    expect([2, 3]).toContain(connectorId);
    expect({ connectorName, host, port, protocol }).toEqual({
      connectorName: `broker-${connectorId}`,
      host: '127.0.0.1',
      port: broker.port,
      protocol: 'mqtt',
    });
  });

  it('gets its profile, answers, sends, and is told what was wrong', async () => {
    const registration = await register();
    const { deviceAuthUuid: uuid } = registration;
    const device = await connectDevice(registration);
    await device.subscribe('down/#');
    await device.publish('up/profile', { state: 'request' });

    const { pId } = await app.call<{ pId: string }>('POST', '/v2/devices/profile', {
      deviceAuthUuids: [uuid],
      purposes: [thresholdPurpose(3, 30)],
    });
    expect(await device.receive('down/profile')).toMatchObject({ pId });
    const stateOf = async () => {
      type RollOut = { devices: { state: string }[] };
      const { devices } = await app.call<RollOut>('GET', `/v2/devices/profile/${pId}`);
      return devices[0]?.state;
    };
    await expect.poll(stateOf).toBe('sent');
    await device.publish('up/profile', { pId, state: 'current' });
    await expect.poll(stateOf).toBe('current');

    const ts = Date.now();
    await device.publish('up/measurements', { sId: '0x01', val: 31, ts });
    await device.publish('up/measurements', { sId: '0x01', val: 999, ts: ts + 1 });
    expect(await device.receive('down/errors')).toMatchObject({ reason: 'out-of-range' });
    const { measurements } = await app.call<{ measurements: unknown[] }>(
      'GET',
      `/v2/measurements/${uuid}`,
    );
    expect(measurements).toEqual([{ sId: '0x01', val: 31, ts }]);
    const { events } = await app.call<{ events: { type: string }[] }>('GET', `/v2/events/${uuid}`);
    expect(events.filter(({ type }) => type === 'sense')).toHaveLength(1);
    await device.end();
  });

  it('is told once about an unknown member, and what it sent is stored', async () => {
    const device = await connectDevice(await register());
    await expectToldOnce(app, device);
    await device.end();
  });

  it('gets its profile from the bridge that took over', async () => {
    const registration = await register();
    const device = await connectDevice(registration);
    await device.subscribe('down/#');
    const holder = await findHolder(service.databaseUrl);
    await endSession(service.databaseUrl, holder?.session ?? 0);
    const session = async () => (await findHolder(service.databaseUrl))?.session ?? holder?.session;
    await expect.poll(session, { timeout: 60_000 }).not.toBe(holder?.session);
    // Rejected by the bridge that serves the broker now.
    await device.publish('up/measurements', { sId: '0x01', val: 999 });
    expect(await device.receive('down/errors')).toMatchObject({ reason: 'out-of-range' });
    const { pId } = await app.call<{ pId: string }>('POST', '/v2/devices/profile', {
      deviceAuthUuids: [device.uuid],
      purposes: [thresholdPurpose(3, 30)],
    });
    expect(await device.receive('down/profile')).toMatchObject({ pId });
    await device.end();
  });

  it('gets its profile even if many do at once', async () => {
    const registrations = await Promise.all(Array.from({ length: 60 }, register));
    const devices = await Promise.all(registrations.map(connectDevice));
    await Promise.all(devices.map((device) => device.subscribe('down/profile')));
    const { pId } = await app.call<{ pId: string }>('POST', '/v2/devices/profile', {
      deviceAuthUuids: devices.map(({ uuid }) => uuid),
      purposes: [thresholdPurpose(3, 30)],
    });
    for (const device of devices)
      expect(await device.receive('down/profile')).toMatchObject({ pId });
    await Promise.all(devices.map((device) => device.end()));
  });

  it('may use MQTT 3.1.1 or 5, and is identified by its topic', async () => {
    const registration = await register();
    const { deviceAuthUuid: username } = registration;
    for (const [place, protocolVersion] of ([4, 5] as const).entries()) {
      const device = await connectAsync(broker.url, { username, protocolVersion });
      const payload = JSON.stringify({ sId: '0x02', val: place, ts: Date.now() });
      await device.publishAsync(`devices/${username}/up/measurements`, payload, { qos: 1 });
      await device.endAsync();
    }
    const countOf = async () => {
      const path = `/v2/measurements/${username}`;
      const { measurements } = await app.call<{ measurements: unknown[] }>('GET', path);
      return measurements.length;
    };
    await expect.poll(countOf).toBe(2);
  });

  it('uses MQTT 5 with the broker, which handles properties and reason codes', async () => {
    const [{ deviceAuthUuid: username }, other] = [await register(), await register()];
    const device = await connectAsync(broker.url, {
      username,
      protocolVersion: 5,
      properties: { sessionExpiryInterval: 60, receiveMaximum: 5 },
    });
    const errors: { reason: string }[] = [];
    device.on('message', (topic, payload) => {
      if (topic.endsWith('/errors')) errors.push(JSON.parse(payload.toString()));
    });
    await device.subscribeAsync(`devices/${username}/down/#`, { qos: 1 });
    const ts = Date.now() - 10_000;
    const send = (topic: string, val: number, properties: object) =>
      device.publishAsync(topic, JSON.stringify({ sId: '0x01', val, ts: ts + val }), {
        qos: 1,
        properties,
      });
    const topic = `devices/${username}/up/measurements`;
    await send(topic, 1, {
      payloadFormatIndicator: true,
      messageExpiryInterval: 600,
      contentType: 'application/json',
      responseTopic: `devices/${username}/down/errors`,
      correlationData: Buffer.from('1'),
      userProperties: { a: ['b', 'c'] },
    });
    // The broker knows what an alias stands for.
    await send(topic, 2, { topicAlias: 1 });
    await send('', 3, { topicAlias: 1 });
    // Section 3.4.2.1: it acknowledges what it accepts, and refuses what its ACL forbids.
    await send(topic, 999, {});
    const foreign = topic.replace(username, other.deviceAuthUuid);
    await expect(send(foreign, 4, {})).rejects.toMatchObject({ code: 0x87 });
    await expect.poll(() => errors).toMatchObject([{ reason: 'out-of-range' }]);
    const valuesOf = async (uuid: string) => {
      const path = `/v2/measurements/${uuid}`;
      const { measurements } = await app.call<{ measurements: { val: number }[] }>('GET', path);
      return measurements.map(({ val }) => val).toReversed();
    };
    expect([await valuesOf(username), await valuesOf(other.deviceAuthUuid)]).toEqual([
      [1, 2, 3],
      [],
    ]);
    await device.endAsync();
  });

  it('that was removed is no longer served, and disturbs nobody', async () => {
    const [removed, other] = [await register(), await register()];
    const device = await connectDevice(removed);
    await device.publish('up/measurements', { sId: '0x01', val: 1 });
    await app.call('DELETE', `/v2/devices/${removed.deviceAuthUuid}`);
    await device.publish('up/measurements', { sId: '0x01', val: 2 });
    const neighbour = await connectAsync(broker.url, { username: other.deviceAuthUuid });
    const topic = `devices/${other.deviceAuthUuid}/up/measurements`;
    await neighbour.publishAsync(topic, JSON.stringify({ sId: '0x01', val: 3 }), { qos: 1 });
    const storedOf = async () => {
      const path = `/v2/measurements/${other.deviceAuthUuid}`;
      const { measurements } = await app.call<{ measurements: { val: number }[] }>('GET', path);
      return measurements.map(({ val }) => val);
    };
    await expect.poll(storedOf).toEqual([3]);
    await neighbour.endAsync();
    await device.end();
  });
});

it.skipIf(!hasMosquitto)(
  'bridges that share do not take over each other’s connections',
  async () => {
    const broker = await startMosquitto([
      'allow_anonymous true',
      'use_username_as_clientid true',
      'sys_interval 1',
    ]);
    const connectors = [bridgeTo(broker, 2), bridgeTo(broker, 3)];
    const service = await testService({}, { change: (config) => ({ ...config, connectors }) });
    const observer = await connectAsync(broker.url, { username: 'observer' });
    let connected = '';
    observer.on('message', (_topic, payload) => (connected = payload.toString()));
    await observer.subscribeAsync('$SYS/broker/clients/connected');
    await expect.poll(() => connected, { timeout: 60_000 }).toBe('3');
    await observer.endAsync();
    await service.close();
    await broker.remove();
  },
);
