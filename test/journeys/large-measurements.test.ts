import { connect, type IConnackPacket, type MqttClient } from 'mqtt';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { configuration, openApp, type App, type Registration } from './app.ts';
import { testService, type TestService } from './service.ts';

const most = 262_144;

let service: TestService;
let app: App;

beforeAll(async () => {
  service = await testService(
    {},
    {
      change: ({ mqtt, ...config }) => ({
        ...config,
        mqtt: { ...mqtt, maxMeasurementPacketBytes: most },
      }),
    },
  );
  app = await openApp(service.url);
});
afterAll(() => service.close());

const register = (protocol?: string) =>
  app.call<Registration>('POST', '/v2/devices', {
    ...configuration,
    ...(protocol && { protocol }),
  });

/** A thousand measurements in 250,000 bytes, each with its own time. */
function measurements(): string {
  const fromTs = Date.now() - 3_600_000;
  const items = Array.from({ length: 1_000 }, (_, n) =>
    JSON.stringify({ sId: '0x02', val: n, ts: fromTs + n }).padEnd(249),
  );
  return `[${items.join(',')}]`;
}

/** Their values by REST, all pages. */
async function listValues({ deviceAuthUuid: uuid }: Registration): Promise<number[]> {
  const values: number[] = [];
  let path: string | undefined = `/v2/measurements/${uuid}`;
  while (path) {
    const { body, next } = await app.page(path);
    values.push(
      ...(body as { measurements: { val: number }[] }).measurements.map(({ val }) => val),
    );
    path = next;
  }
  return values.sort((one, other) => one - other);
}
const all = Array.from({ length: 1_000 }, (_, n) => n);

type Connected = { client: MqttClient; maximumPacketSize: number | undefined };

async function open(of: Registration, protocolVersion: 4 | 5): Promise<Connected> {
  const { host, port, deviceAuthUuid: username, deviceAuthToken: password } = of;
  const options = { host, port, username, password, protocolVersion, reconnectPeriod: 0 };
  const client = connect(options).on('error', () => {});
  const { properties } = await new Promise<IConnackPacket>((resolve) =>
    client.once('connect', resolve),
  );
  return { client, maximumPacketSize: properties?.maximumPacketSize };
}

describe.each([
  [4, undefined],
  [5, most],
] as const)('over MQTT, version %i', (version, told) => {
  test('1,000 measurements in 250 KB are stored', async () => {
    const registration = await register();
    const { client, maximumPacketSize } = await open(registration, version);
    expect(maximumPacketSize).toBe(told);
    const topic = `devices/${registration.deviceAuthUuid}/up/measurements`;
    await client.publishAsync(topic, measurements(), { qos: 1 });
    expect(await listValues(registration)).toEqual(all);
    await client.endAsync();
  });

  test('anything else of that size ends the connection', async () => {
    const registration = await register();
    const { client } = await open(registration, version);
    const closed = new Promise<void>((resolve) => client.once('close', () => resolve()));
    const topic = `devices/${registration.deviceAuthUuid}/up/events`;
    client.publish(topic, measurements(), { qos: 1 }, () => {});
    await closed;
    client.end(true);
    const { rejections } = await app.call<{ rejections: unknown[] }>(
      'GET',
      `/v2/devices/${registration.deviceAuthUuid}/rejections`,
    );
    expect(rejections).toEqual([]);
  });
});

describe('over HTTP', () => {
  const post = async (of: Registration, topic: string, body: string) => {
    const { host, port, deviceAuthUuid: uuid, deviceAuthToken: token } = of;
    const headers = { 'Content-Type': 'application/json', Authorization: `Bearer ${token}` };
    const url = `http://${host}:${port}/devices/${uuid}/up/${topic}`;
    const response = await fetch(url, { method: 'POST', body, headers });
    return { status: response.status, body: (await response.json()) as object };
  };

  test('1,000 measurements in 250 KB are stored, and a repetition changes nothing', async () => {
    const registration = await register('http');
    const body = measurements();
    expect(await post(registration, 'measurements', body)).toMatchObject({
      status: 200,
      body: { stored: 1_000, repeated: 0, rejected: [] },
    });
    expect(await post(registration, 'measurements', body)).toMatchObject({
      status: 200,
      body: { stored: 0, repeated: 1_000 },
    });
    expect(await listValues(registration)).toEqual(all);
    expect((await post(registration, 'measurements', body.padEnd(most + 1))).status).toBe(413);
    expect((await post(registration, 'events', body)).status).toBe(413);
  });
});
