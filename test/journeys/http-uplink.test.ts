import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { databaseKinds } from '../support/database.ts';
import { configuration, openApp, send, thresholdPurpose } from './app.ts';
import type { App, Registration } from './app.ts';
import { connectDevice } from './device.ts';
import { testService, type TestService } from './service.ts';

type Answer = { status: number; body: Record<string, unknown> };

const overHttp = { ...configuration, protocol: 'http' };

describe.each(databaseKinds)('a device over HTTP on %s', (kind) => {
  let service: TestService;
  let app: App;
  let device: Registration;

  beforeAll(async () => {
    service = await testService({}, { kind });
    app = await openApp(service.url);
    device = await app.call<Registration>('POST', '/v2/devices', overHttp);
  });
  afterAll(() => service.close());

  async function post(topic: string, payload: unknown, of = device): Promise<Answer> {
    const { deviceAuthUuid: uuid, deviceAuthToken: token } = of;
    const url = `http://${device.host}:${device.port}/devices/${uuid}/up/${topic}`;
    const response = await send(url, 'POST', payload, token);
    return { status: response.status, body: (await response.json()) as Answer['body'] };
  }
  const outcome = async (topic: string, payload: unknown, of = device) => {
    const { status, body } = await post(topic, payload, of);
    return { status, ...body, timestamp: undefined };
  };
  const news = (stored: number, repeated = 0, rejected: unknown[] = []) => ({
    status: 200,
    stored,
    repeated,
    rejected,
  });
  const register = () => app.call<Registration>('POST', '/v2/devices', overHttp);

  test('gets a connector of its kind, which listens there', async () => {
    expect(device).toMatchObject({ connectorId: 2, protocol: 'http', host: '127.0.0.1' });
    expect(`http://${device.host}:${device.port}`).toBe(service.url);
    const { body } = await post('measurements', { sId: '0x01', val: 1 });
    expect(body['timestamp']).toEqual(expect.any(Number));
    const batch = await app.call<{ devices: Registration[] }>('POST', '/v2/devices/batch', {
      devices: [overHttp, configuration, { ...configuration, protocol: 'mqtt' }],
    });
    expect(batch.devices.map(({ protocol }) => protocol)).toEqual(['http', 'mqtt', 'mqtt']);
    const described = await app.call('GET', `/v2/devices/${device.deviceAuthUuid}/configuration`);
    expect(described).not.toHaveProperty('protocol');
  });

  test('is told the result of each measurement, and a repetition changes nothing', async () => {
    const of = await register();
    const ts = Date.now() - 60_000;
    const one = (val: number, at = ts) => ({ sId: '0x01', val, ts: at });
    expect(await outcome('measurements', one(1), of)).toEqual(news(1));
    expect(await outcome('measurements', one(1), of)).toEqual(news(0, 1));
    // A stored one, one beside it in its millisecond, a new one, and that one again.
    const mixed = [one(1), one(2), one(3, ts + 1), one(3, ts + 1)];
    expect(await outcome('measurements', mixed, of)).toEqual(news(2, 2));
    expect(await outcome('measurements', mixed, of)).toEqual(news(0, 4));
    const { measurements } = await app.call<{ measurements: { val: number }[] }>(
      'GET',
      `/v2/measurements/${of.deviceAuthUuid}`,
    );
    expect(measurements.map(({ val }) => val).sort()).toEqual([1, 2, 3]);
  });

  test('is told what is wrong with some, which is recorded; the others are stored', async () => {
    const of = await register();
    const ts = Date.now();
    const bad = [{ sId: 'nope', val: 1 }, { sId: '0x01', val: 900 }, { sId: '0x01' }];
    const answer = await post('measurements', [...bad, { sId: '0x01', val: 1, ts }], of);
    expect(answer).toMatchObject({ status: 200, body: { stored: 1, repeated: 0 } });
    const rejected = answer.body['rejected'] as { path: string; reason: string }[];
    expect(rejected.map(({ path, reason }) => `${path} ${reason}`).sort()).toEqual([
      '/0/sId unknown-sense',
      '/1/val out-of-range',
      '/2/val invalid-payload',
    ]);
    const many = Array.from({ length: 50 }, () => ({ sId: 'nope', val: 1 }));
    const { body } = await post('measurements', many, of);
    const told = body['rejected'] as { reason: string; more?: number }[];
    expect([told.length, told.at(-1)?.reason, told.at(-1)?.more]).toEqual([
      11,
      'more-of-message',
      40,
    ]);
    const { rejections } = await app.call<{ rejections: { reason: string }[] }>(
      'GET',
      `/v2/devices/${of.deviceAuthUuid}/rejections`,
    );
    expect(rejections.filter(({ reason }) => reason === 'out-of-range')).toHaveLength(1);
  });

  test('that sends something unreadable gets 400, and it is recorded', async () => {
    const of = await register();
    const { deviceAuthUuid: uuid, deviceAuthToken: token } = of;
    const url = `${service.url}/devices/${uuid}/up/measurements`;
    const headers = { authorization: `Bearer ${token}` };
    for (const body of ['no JSON', new Uint8Array([0xff, 0xfe]), '']) {
      const response = await fetch(url, { method: 'POST', headers, body });
      expect([response.status, response.headers.get('content-type')]).toEqual([
        body instanceof Uint8Array ? 400 : 415,
        'application/problem+json',
      ]);
    }
    const json = { ...headers, 'content-type': 'application/json' };
    for (const body of ['no JSON', '', '5', 'null']) {
      const response = await fetch(url, { method: 'POST', headers: json, body });
      expect(response.status, body).toBe(400);
      expect(await response.json()).toMatchObject({ errors: [{ path: '' }] });
    }
    expect((await post('nowhere', {}, of)).status).toBe(404);
    expect((await post('time', { echo: [] }, of)).body['rejected']).toMatchObject([
      { path: '/echo', reason: 'invalid-payload' },
    ]);
    const { rejections } = await app.call<{ rejections: { reason: string }[] }>(
      'GET',
      `/v2/devices/${uuid}/rejections`,
    );
    const reasons = rejections.map(({ reason }) => reason);
    expect(reasons.filter((reason) => reason === 'invalid-json')).toHaveLength(3);
    expect(reasons).toContain('unknown-topic');
  });

  test('reports its state and its events, each once', async () => {
    const of = await register();
    const ts = Date.now() - 1_000;
    const state = { puId: 3, stId: 1, ts };
    expect(await outcome('state', state, of)).toEqual(news(1));
    expect(await outcome('state', state, of)).toEqual(news(0, 1));
    const event = (evId: number) => ({
      cause: {
        engine: { pId: 'own', puId: 3, stId: 1, evId, ts },
        senses: [{ sId: '0x01', val: 31, ts }],
      },
    });
    expect(await outcome('events', event(1), of)).toEqual(news(1));
    expect(await outcome('events', [event(1), event(2), event(2)], of)).toEqual(news(1, 2));
    const { events } = await app.call<{ events: unknown[] }>(
      'GET',
      `/v2/events/${of.deviceAuthUuid}?type=sense`,
    );
    expect(events).toHaveLength(2);
    expect(await outcome('configuration', configuration, of)).toEqual(news(1));
  });

  test('runs a profile that was installed on it, without ever asking for it', async () => {
    const of = await register();
    const { deviceAuthUuid: uuid } = of;
    await app.call('POST', '/v2/devices/profile', {
      deviceAuthUuids: [uuid],
      purposes: [thresholdPurpose(7, 30)],
    });
    expect(await outcome('measurements', { sId: '0x01', val: 31 }, of)).toEqual(news(1));
    const { events } = await app.call<{ events: unknown[] }>(
      'GET',
      `/v2/events/${uuid}?type=sense`,
    );
    expect(events).toHaveLength(1);
    expect(await outcome('profile', { state: 'request' }, of)).toEqual(news(1));
    expect(await outcome('profile', { state: 'request' }, of)).toEqual(news(0, 1));
  });

  test('may use its credential over MQTT, where it gets the time and is told that a ts looks like seconds', async () => {
    const of = await register();
    const other = await app.call<Registration>('POST', '/v2/devices', configuration);
    const mqtt = await connectDevice({ ...other, ...of, protocol: 'mqtt', port: other.port });
    await mqtt.subscribe('down/time');
    await mqtt.subscribe('down/errors');
    const before = Date.now() - 5_000;
    await mqtt.publish('up/time', { echo: 17 });
    const answer = await mqtt.receive('down/time');
    expect(answer['echo']).toBe(17);
    expect(answer['ts']).toBeGreaterThan(before);
    await mqtt.publish('up/measurements', { sId: '0x01', val: 1, ts: 1_767_225_600 });
    expect((await mqtt.receive('down/errors'))['message']).toMatch(
      /milliseconds.*looks like seconds/,
    );
    await mqtt.end();
  });

  test('has its refused logins recorded, with their origin', async () => {
    const of = await register();
    const { status } = await post('state', 1, { ...of, deviceAuthToken: 'wrong' });
    expect(status).toBe(401);
    const path = `/v2/devices/${of.deviceAuthUuid}/refused-logins`;
    const refused = { reason: 'wrong-token', address: '127.0.0.1', count: 1 };
    await expect.poll(() => app.call('GET', path)).toMatchObject({ refusedLogins: [refused] });
  });

  test('is locked out as soon as its token is revoked', async () => {
    const of = await register();
    const { deviceAuthUuid: uuid } = of;
    await post('measurements', { sId: '0x01', val: 1 }, of);
    await app.call('POST', `/v2/devices/${uuid}/token`, { revoke: true });
    expect((await post('measurements', { sId: '0x01', val: 2 }, of)).status).toBe(401);
    await app.call('DELETE', `/v2/devices/${uuid}`);
    expect((await post('measurements', { sId: '0x01', val: 2 }, of)).status).toBe(401);
  });
});

test('a registration names a configured and known protocol, or is refused at /protocol', async () => {
  const service = await testService(
    {},
    {
      change: (config) => ({
        ...config,
        connectors: config.connectors.filter(({ kind }) => kind === 'mqtt'),
      }),
    },
  );
  const credentials = { email: 'no-http@example.org', password: 'correct horse battery' };
  const account = await send(`${service.url}/v2/accounts`, 'POST', credentials);
  const { accountAuthToken } = (await account.json()) as { accountAuthToken: string };
  const ask = async (path: string, body: unknown) => {
    const response = await send(service.url + path, 'POST', body, accountAuthToken);
    return { status: response.status, body: (await response.json()) as Answer['body'] };
  };
  const refused = (path: string) => ({ status: 400, body: { errors: [{ path }] } });
  expect(await ask('/v2/devices', overHttp)).toMatchObject(refused('/protocol'));
  const unknown = { ...configuration, protocol: 'smoke' };
  expect(await ask('/v2/devices', unknown)).toMatchObject(refused('/protocol'));
  const batch = { devices: [configuration, overHttp] };
  expect(await ask('/v2/devices/batch', batch)).toMatchObject(refused('/devices/1/protocol'));
  const plain = await ask('/v2/devices', configuration);
  expect(plain.body['protocol']).toBe('mqtt');
  const { deviceAuthUuid: uuid } = plain.body as { deviceAuthUuid: string };
  expect((await ask(`/devices/${uuid}/up/measurements`, {})).status).toBe(404);
  await service.close();
});

test('a process of such a connector listens on HTTP_PORT for devices only', async () => {
  const service = await testService({}, { role: { name: 'connector', id: 2 } });
  const ready = await fetch(`${service.url}/readyz`);
  expect([ready.status, service.mqttPort]).toEqual([200, 0]);
  const nobody = '00000000-0000-4000-8000-000000000000';
  const up = await fetch(`${service.url}/devices/${nobody}/up/time`, { method: 'POST' });
  expect(up.status).toBe(401);
  expect((await fetch(`${service.url}/v2/devices`)).status).toBe(404);
  await service.close();
});
