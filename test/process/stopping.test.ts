import { once } from 'node:events';
import { rmSync, writeFileSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { startProxy, type Proxy } from '../faults/proxy.ts';
import { configuration, openApp, send, type Registration } from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';
import { runProgram, type Running } from '../journeys/process.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { startStranger, strangers, type Stranger } from './refused-start.ts';

/** Shorter than the default, so that an overrun is still within Docker's limit. */
const stopTimeoutMs = 6_000;
const dockerWaitsMs = 10_000;

const dir = makeTemporaryDir();
let database: TestDatabase;
let proxy: Proxy;
let broker: Stranger;
let service: Running;
const sockets: Socket[] = [];

beforeAll(async () => {
  database = await testDatabase();
  proxy = await startProxy(Number(new URL(database.url).port));
  broker = await startStranger(strangers['silent'] ?? (() => {}));
});
afterEach(async () => {
  for (const socket of sockets.splice(0)) socket.destroy();
  proxy.heal();
  if (service.child.exitCode === null) service.child.kill('SIGKILL');
  await service.ended();
});
afterAll(async () => {
  broker.close();
  await proxy.close();
  await database.drop();
  rmSync(dir, { recursive: true });
});

/** The service, with the database behind the proxy, and a bridge to a broker that does not answer. */
async function start() {
  const url = new URL(database.url);
  url.port = String(proxy.port);
  const address = { protocol: 'mqtt', host: '127.0.0.1' };
  const connectors = [
    { kind: 'mqtt', id: 1, name: 'own', ...address, port: null },
    {
      kind: 'bridge',
      id: 2,
      name: 'silent',
      ...address,
      port: 1,
      broker: { url: `mqtt://127.0.0.1:${broker.port}` },
    },
  ];
  const configFile = join(dir, 'config.json');
  writeFileSync(configFile, JSON.stringify({ connectors }));
  service = runProgram(process.execPath, ['src/main.ts'], {
    env: {
      DATABASE_URL: url.href,
      SECRET: 'a secret for tests that is long enough to be one',
      CONFIG_FILE: configFile,
      HTTP_HOST: '127.0.0.1',
      HTTP_PORT: '0',
      MQTT_HOST: '127.0.0.1',
      MQTT_PORT: '0',
      PUBLIC_HOST: '127.0.0.1',
      DRAIN_DELAY_MS: '500',
      STOP_TIMEOUT_MS: String(stopTimeoutMs),
    },
  });
  const [, port, mqttPort] = await service.printed(
    /"http":\{[^}]*"port":(\d+)[^\n]*"mqtt":\{[^}]*"port":(\d+)[^\n]*"Ready\."/,
  );
  return { url: `http://127.0.0.1:${port}`, port: Number(port), mqttPort: Number(mqttPort) };
}

/** A client that requests the stream of an account's events and never reads it. */
async function openUnreadStream(url: string, port: number, email: string): Promise<void> {
  const login = { email, password: 'correct horse battery' };
  const answer = await send(`${url}/v2/accounts/login`, 'POST', login);
  const { accountAuthToken } = (await answer.json()) as { accountAuthToken: string };
  const socket = connect(port, '127.0.0.1');
  sockets.push(socket);
  socket.on('error', () => undefined);
  await once(socket, 'connect');
  socket.pause();
  socket.write(
    `GET /v2/events/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${accountAuthToken}\r\n\r\n`,
  );
}

/** A device that publishes each message after the previous acknowledgement, until its connection ends. */
async function publishOn(url: string, mqttPort: number) {
  const app = await openApp(url);
  const registration = await app.call<Registration>('POST', '/v2/devices', configuration);
  const device = await connectDevice({ ...registration, port: mqttPort, protocol: 'mqtt' });
  const acknowledged: number[] = [];
  let sent = 0;
  const { client } = device;
  const publishNext = () =>
    void device.publish('up/measurements', { sId: '0x02', val: ++sent }).then(
      () => {
        acknowledged.push(sent);
        publishNext();
      },
      () => undefined,
    );
  publishNext();
  await expect.poll(() => acknowledged.length, { timeout: 60_000 }).toBeGreaterThan(20);
  const closed = new Promise<void>((resolve) => client.once('close', () => resolve()));
  /** All acknowledgements that it will ever get. */
  const getAcknowledged = async () => {
    await closed;
    client.end(true);
    return acknowledged;
  };
  return { app, getAcknowledged };
}

/** Asks it to stop, and returns how that ended. */
async function stop() {
  const sinceMs = performance.now();
  service.child.kill('SIGTERM');
  const status = await service.ended();
  const ms = performance.now() - sinceMs;
  const lines = service
    .stdout()
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
  const steps = lines.filter(({ event }) => event === 'stop.step-cut').map(({ step }) => step);
  const finished = lines.find(({ event }) => event === 'stop.finished');
  return { status, ms, steps, finished, lines };
}

async function listStored(): Promise<number[]> {
  const { rows } = await database.db.query<{ val: number }>('select val from measurement');
  return rows.map(({ val }) => val);
}

describe('a process that is asked to stop', () => {
  it('is delayed neither by a broker that does not answer nor by a client that never reads', async () => {
    const { url, port, mqttPort } = await start();
    const { app, getAcknowledged } = await publishOn(url, mqttPort);
    await openUnreadStream(url, port, app.email);
    const { status, ms, finished } = await stop();
    expect(ms).toBeLessThan(dockerWaitsMs);
    expect(finished).toMatchObject({ unfinished: [] });
    expect(status).toBe(0);
    expect(await listStored()).toEqual(expect.arrayContaining(await getAcknowledged()));
  });

  it('abandons what hangs with a hanging database, and does the rest', async () => {
    await database.db.query('delete from measurement');
    const { url, port, mqttPort } = await start();
    const { app, getAcknowledged } = await publishOn(url, mqttPort);
    await openUnreadStream(url, port, app.email);
    proxy.stall();
    const { status, ms, steps, finished } = await stop();
    expect(ms).toBeLessThan(dockerWaitsMs);
    expect(status).toBe(1);
    // It ended in order; nothing killed it.
    expect(finished?.['unfinished']).toEqual(expect.arrayContaining(steps));
    expect(steps.length).toBeGreaterThan(0);
    proxy.heal();
    expect(await listStored()).toEqual(expect.arrayContaining(await getAcknowledged()));
  });
});
