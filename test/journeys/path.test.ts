import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { databaseKinds } from '../support/database.ts';
import { configuration, openApp, thresholdPurpose } from './app.ts';
import type { App, Registration } from './app.ts';
import { connectDevice } from './device.ts';
import { testService } from './service.ts';
import type { TestService } from './service.ts';

type Events = { events: Record<string, unknown>[] };
type Configured = { currentProfile: { pId?: string }; pendingProfile: { pId?: string } };

describe.each(databaseKinds)('the way of a measurement on %s', (kind) => {
  let service: TestService;
  let app: App;

  beforeAll(async () => {
    service = await testService({}, { kind });
    app = await openApp(service.url);
  });
  afterAll(() => service.close());

  const register = () => app.call<Registration>('POST', '/v2/devices', configuration);
  const eventsOf = (uuid: string, type: string) =>
    app.call<Events>('GET', `/v2/events/${uuid}?type=${type}`).then(({ events }) => events);
  const install = (uuid: string, ...purposes: unknown[]) =>
    app.call<{ pId: string; state: string }>('POST', '/v2/devices/profile', {
      deviceAuthUuids: [uuid],
      purposes,
    });

  it('answers a registration with the connector that really listens (section 2.4)', async () => {
    expect(await register()).toMatchObject({
      connectorId: 1,
      connectorName: 'connector-1',
      protocol: 'mqtt',
      host: '127.0.0.1',
      port: service.mqttPort,
      deviceAuthUuid: expect.stringMatching(/^[0-9a-f-]{36}$/),
      deviceAuthToken: expect.stringMatching(/^[\w-]{32,43}$/),
      timestamp: expect.any(Number),
    });
  });

  it('has an acknowledged measurement in the history', async () => {
    const device = await connectDevice(await register());
    const ts = Date.now();
    await device.publish('up/measurements', { sId: '0x01', val: 21.5, ts });
    const { measurements } = await app.call<{ measurements: unknown[] }>(
      'GET',
      `/v2/measurements/${device.uuid}`,
    );
    expect(measurements).toEqual([{ sId: '0x01', val: 21.5, ts }]);
    await device.end();
  });

  it('hands a profile to a connected device, runs it once it is answered, and records what fires', async () => {
    const device = await connectDevice(await register());
    await device.subscribe('down/profile');
    const { pId, state } = await install(device.uuid, thresholdPurpose(7, 30));
    expect(state).toBe('pending');
    const handed = await device.receive('down/profile');
    expect(handed).toMatchObject({ pId, purposes: [{ puId: 7, initStId: 1 }] });

    await device.publish('up/profile', { pId, state: 'current' });
    const configured = await app.call<Configured>(
      'GET',
      `/v2/devices/${device.uuid}/configuration`,
    );
    expect(configured).toMatchObject({ currentProfile: { pId }, pendingProfile: {} });
    expect(await eventsOf(device.uuid, 'device')).toMatchObject([
      {
        type: 'device',
        event: 'purposeChanged',
        oldValue: 0,
        newValue: 7,
        deviceAuthUuid: device.uuid,
      },
    ]);

    const ts = Date.now();
    await device.publish('up/measurements', { sId: '0x01', val: 30, ts });
    expect(await eventsOf(device.uuid, 'sense')).toEqual([]);
    await device.publish('up/measurements', { sId: '0x01', val: 31, ts: ts + 1 });
    expect(await eventsOf(device.uuid, 'sense')).toMatchObject([
      {
        type: 'sense',
        timestamp: ts + 1,
        deviceAuthUuid: device.uuid,
        cause: {
          engine: { pId, puId: 7, stId: 1, evId: 5, ts: ts + 1 },
          senses: [{ sId: '0x01', val: 31, ts: ts + 1 }],
        },
      },
    ]);
    await device.end();
  });

  it('hands a profile to a device that was offline as soon as it subscribes', async () => {
    const registration = await register();
    const { pId } = await install(registration.deviceAuthUuid, thresholdPurpose(3, 10));
    const device = await connectDevice(registration);
    await device.subscribe('down/#');
    expect(await device.receive('down/profile')).toMatchObject({ pId });
    await device.end();
  });

  it('runs a profile on a plain sensor without its asking, before its next message is evaluated', async () => {
    const device = await connectDevice(await register());
    const { pId } = await install(device.uuid, thresholdPurpose(7, 30));
    await device.publish('up/measurements', { sId: '0x01', val: 31 });
    expect(await eventsOf(device.uuid, 'sense')).toMatchObject([{ cause: { engine: { pId } } }]);
    await device.end();
  });

  it('accepts a state report that changes the purpose', async () => {
    const device = await connectDevice(await register());
    await install(device.uuid, thresholdPurpose(7, 30), thresholdPurpose(8, 40));
    await device.publish('up/state', { puId: 8, stId: 1, ts: Date.now() + 60_000 });
    expect(await eventsOf(device.uuid, 'device')).toMatchObject([
      { event: 'purposeChanged', oldValue: 7, newValue: 8 },
      { event: 'purposeChanged', oldValue: 0, newValue: 7 },
    ]);
    const { devices } = await app.call<{ devices: { uuid: string; state: unknown }[] }>(
      'GET',
      '/v2/devices',
    );
    const listed = devices.find(({ uuid }) => uuid === device.uuid);
    expect(listed?.state).toMatchObject({ puId: 8, stId: 1 });
    await device.end();
  });

  it('records what is wrong, says why, and acknowledges it', async () => {
    const device = await connectDevice(await register());
    await device.subscribe('down/errors');
    await device.publish('up/measurements', [
      { sId: '0x01', val: 1 },
      { sId: '0x77', val: 1 },
    ]);
    expect(await device.receive('down/errors')).toMatchObject({ reason: 'unknown-sense' });
    const { rejections } = await app.call<{ rejections: unknown[] }>(
      'GET',
      `/v2/devices/${device.uuid}/rejections`,
    );
    expect(rejections).toMatchObject([{ reason: 'unknown-sense', path: '/1/sId' }]);
    await device.end();
  });

  it('serves MQTT over WebSocket at /mqtt of the HTTP port', async () => {
    const registration = await register();
    const port = Number(new URL(service.url).port);
    const device = await connectDevice({ ...registration, protocol: 'ws', port });
    await device.publish('up/measurements', { sId: '0x02', val: 5 });
    await device.end();
  });

  it('closes the connection of a removed device, which cannot reconnect', async () => {
    const registration = await register();
    const device = await connectDevice(registration);
    await app.call('DELETE', `/v2/devices/${device.uuid}`);
    await expect.poll(() => device.client.connected).toBe(false);
    await expect(connectDevice(registration)).rejects.toMatchObject({ code: 5 });
  });
});
