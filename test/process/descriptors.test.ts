import { execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readdirSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { shareFiles } from '../../src/assembly/resources.ts';
import { configuration, openApp, send, type App, type Registration } from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';
import { runProgram, type Running } from '../journeys/process.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { findProgram } from '../support/program.ts';

const openFiles = 256;
const stranger = '127.0.0.66';

let database: TestDatabase;
let service: Running;
let ports: { http: number; mqtt: number };
let url: string;
let app: App;
let sockets: Socket[] = [];

beforeAll(async () => {
  database = await testDatabase();
  service = runProgram(
    'sh',
    ['-c', `ulimit -n ${openFiles}; exec "$0" src/main.ts`, process.execPath],
    {
      env: {
        HTTP_PORT: '0',
        MQTT_PORT: '0',
        HTTP_HOST: '127.0.0.1',
        MQTT_HOST: '127.0.0.1',
        PUBLIC_HOST: '127.0.0.1',
        DATABASE_URL: database.url,
        SECRET: 'a secret that only this test knows, long enough',
      },
    },
  );
  const [line] = await service.printed(/^.*"Ready\.".*$/m);
  const { http, mqtt } = JSON.parse(line) as Record<'http' | 'mqtt', { port: number }>;
  ports = { http: http.port, mqtt: mqtt.port };
  url = `http://127.0.0.1:${ports.http}`;
  app = await openApp(url);
});
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});
afterAll(async () => {
  service.child.kill('SIGTERM');
  await service.ended();
  await database.drop();
});

const listOpenFiles = () => readdirSync(`/proc/${service.child.pid}/fd`).length;
const eventsOf = (event: string) =>
  service
    .stdout()
    .split('\n')
    .filter((line) => line.includes(`"event":"${event}"`));

/** A stranger opens this many connections, writes this text on each, and keeps them open. */
async function hold(port: number, count: number, text: string): Promise<void> {
  for (let n = 0; n < count; n += 1) {
    const socket = connect({ host: '127.0.0.1', port, localAddress: stranger });
    sockets.push(socket);
    socket.on('error', () => {}).resume();
    socket.write(text);
    await Promise.race([once(socket, 'connect'), once(socket, 'close')]);
  }
}

const forms = {
  'say nothing': '',
  'have asked once': 'GET /livez HTTP/1.1\r\nHost: x\r\n\r\n',
  'never finish a head': 'GET /livez HTTP/1.1\r\nHost:',
  'never finish a body': 'POST /v2/accounts/login HTTP/1.1\r\nHost: x\r\nContent-Length: 9\r\n\r\n',
};

describe('a stranger who opens more connections than the process may open files', () => {
  test.each(Object.entries(forms))('and %s excludes nobody else', async (_form, text) => {
    await hold(ports.http, 2 * openFiles, text);
    await hold(ports.mqtt, 2 * openFiles, '');
    expect((await fetch(`${url}/livez`)).status).toBe(200);
    // With a new account and device, so that the database is used too.
    const registration = await app.call<Registration>('POST', '/v2/devices', configuration);
    const device = await connectDevice(registration);
    await device.publish('up/measurements', { sId: '0x02', val: 1 });
    await device.end();
    expect(listOpenFiles()).toBeLessThan(openFiles - 32);
  });

  test('is reported in the log once a minute', () => {
    const few = eventsOf('connections.few').map((line) => JSON.parse(line) as object);
    expect(few).toMatchObject([{ openFiles, connections: openFiles / 2 }]);
    const told = eventsOf('connections.full');
    expect(told.length).toBeGreaterThanOrEqual(2);
    expect(told.length).toBeLessThanOrEqual(6);
  });
});

test.skipIf(findProgram('prlimit') === null)(
  'without a free file, connections are accepted again as soon as there is one',
  async () => {
    const pid = String(service.child.pid);
    const setLimit = (limit: number) =>
      execFileSync('prlimit', ['--pid', pid, `--nofile=${limit}:${openFiles}`]);
    setLimit(listOpenFiles());
    for (let n = 0; n < 40; n += 1)
      await send(`${url}/livez`, 'GET').then(
        () => undefined,
        () => undefined,
      );
    setLimit(openFiles);
    expect((await fetch(`${url}/livez`)).status).toBe(200);
    const device = await connectDevice(
      await app.call<Registration>('POST', '/v2/devices', configuration),
    );
    await device.end();
  },
);

test.each([
  [Infinity, { most: Infinity, kept: 0 }],
  [1_048_576, { most: 1_047_552, kept: 261_888 }],
  [20_000, { most: 18_976, kept: 4_744 }],
  [1_024, { most: 512, kept: 128 }],
])('of %d files so many are for connections', (files, expected) => {
  expect(shareFiles(files)).toEqual(expected);
});
