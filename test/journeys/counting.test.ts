import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { configuration, openApp } from './app.ts';
import type { Registration } from './app.ts';
import { connectDevice } from './device.ts';
import { runProgram, type Running } from './process.ts';

const fiveInARow = {
  puId: 1,
  initStId: 1,
  states: [
    {
      stId: 1,
      events: [
        {
          evId: 5,
          eventLog: true,
          causes: [{ sId: '0x01', threshold: { count: 5 }, thresholds: { isGt: 30 } }],
        },
      ],
    },
  ],
};

let database: TestDatabase;
let dataDir: string;
const running: Running[] = [];

beforeAll(async () => {
  database = await testDatabase();
  dataDir = await mkdtemp(join(tmpdir(), 'counting-'));
});
afterAll(async () => {
  for (const { child } of running) child.kill('SIGKILL');
  await Promise.all(running.map(({ ended }) => ended()));
  await database.drop();
  await rm(dataDir, { recursive: true, force: true });
});

/** Starts the service as a process of its own, on the one database. */
async function start() {
  const local = '127.0.0.1';
  const service = runProgram(process.execPath, ['src/main.ts'], {
    env: {
      DATABASE_URL: database.url,
      SECRET: 'a secret for tests that is long enough to be one',
      DATA_DIR: dataDir,
      HTTP_HOST: local,
      HTTP_PORT: '0',
      MQTT_HOST: local,
      MQTT_PORT: '0',
      PUBLIC_HOST: local,
    },
  });
  running.push(service);
  const [, ports = '{}'] = await service.printed(/("http":\{[^\n]*)"msg":"Ready\."/);
  const port = (name: string) =>
    Number(new RegExp(`"${name}":\\{[^}]*"port":(\\d+)`).exec(ports)?.[1]);
  return { url: `http://${local}:${port('http')}`, mqttPort: port('mqtt'), process: service };
}

it('a count of 5 with 3 matches before kill -9, 1 after it and 1 in another process fires once', async () => {
  const first = await start();
  const app = await openApp(first.url);
  const registration = await app.call<Registration>('POST', '/v2/devices', configuration);
  const uuid = registration.deviceAuthUuid;
  await app.call('POST', '/v2/devices/profile', {
    deviceAuthUuids: [uuid],
    purposes: [fiveInARow],
  });
  const ts = Date.now();
  const measure = async (port: number, ...places: number[]) => {
    const device = await connectDevice({ ...registration, port });
    for (const place of places) {
      await device.publish('up/measurements', { sId: '0x01', val: 31, ts: ts + place });
    }
    await device.end();
  };
  await measure(first.mqttPort, 1, 2, 3);
  first.process.child.kill('SIGKILL');
  await first.process.ended();

  const second = await start();
  // The third once more, as a device does that did not get its acknowledgement.
  await measure(second.mqttPort, 3, 4);
  const third = await start();
  await measure(third.mqttPort, 5);
  await measure(second.mqttPort, 6);

  const events = await database.db.query<{ ts: number }>(
    `select e.ts from event e join device d on d.id = e.device_id
      where d.uuid = $1 and e.type = 'sense'`,
    [uuid],
  );
  expect(events.rows).toEqual([{ ts: ts + 5 }]);
});
