// The examples of docs/devices.md while the operator changes the secret: each stores and uses its new token.
import { copyFileSync, existsSync, readFileSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { send, type Registration } from '../journeys/app.ts';
import { projectDir, runProgram, type Running } from '../journeys/process.ts';
import { createPrograms, fill, letsIn, type Started } from '../secret-check/program.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { debianPython, hasPaho } from '../support/python.ts';

const before = 'the first secret of a test, long enough to be one';
const after = 'the second secret of a test, long enough to be one';
const configuration = {
  device: { name: 'Example' },
  module: [{ moduleId: 'm', senses: [{ sId: '0x10' }] }],
};
const names = ['device.mjs', 'http-device.mjs', 'device.py', 'http_device.py'];
const runnable = names.filter((name) => name !== 'device.py' || hasPaho);
const patience = { timeout: 60_000 };

describe('a new token', () => {
  const programs = createPrograms();
  const devices = new Map<string, Registration>();
  let database: TestDatabase;
  let service: Started;
  let accountToken: string;

  beforeAll(async () => {
    database = await testDatabase('postgresql');
    const shared = { DATABASE_URL: database.url, DATA_DIR: makeTemporaryDir() };
    const first = await programs.start({ ...shared, SECRET: before });
    ({ token: accountToken } = await fill(first.url));
    for (const name of names) {
      const answer = await send(`${first.url}/v2/devices`, 'POST', configuration, accountToken);
      devices.set(name, (await answer.json()) as Registration);
    }
    await first.stop();
    service = await programs.start({ ...shared, SECRET: after, SECRET_PREVIOUS: before });
  });
  afterAll(async () => {
    await programs.stopAll();
    await database?.drop();
  });

  test.each(runnable)('is taken by %s, and survives a restart', async (name) => {
    const isPython = name.endsWith('.py');
    const device = devices.get(name) as Registration;
    const { deviceAuthUuid: uuid, deviceAuthToken: token } = device;
    const cwd = makeTemporaryDir();
    symlinkSync(join(projectDir, 'node_modules'), join(cwd, 'node_modules'));
    for (const file of [name, 'unsent.mjs', 'unsent.py'])
      copyFileSync(join(projectDir, 'examples/devices', file), join(cwd, file));
    const start = (): Running =>
      runProgram(isPython ? debianPython : 'node', [join(cwd, name)], {
        cwd,
        env: {
          DEVICE_UUID: uuid,
          DEVICE_TOKEN: token,
          DEVICE_PORT: String(service.mqttPort),
          DEVICE_URL: `mqtt://127.0.0.1:${service.mqttPort}`,
          DEVICE_HTTP_URL: service.url,
          INTERVAL: '0.2',
          PYTHONUNBUFFERED: '1',
        },
      });
    const end = async (program: Running) => {
      program.child.kill('SIGKILL');
      await program.ended();
    };
    const stored = async (): Promise<number> => {
      const path = `/v2/measurements/${uuid}?limit=1000`;
      const answer = await send(`${service.url}${path}`, 'GET', undefined, accountToken);
      return ((await answer.json()) as { measurements: object[] }).measurements.length;
    };

    const running = start();
    await expect.poll(() => letsIn(service.mqttPort, device), patience).toBe(false);
    const file = join(cwd, `token-${uuid}.txt`);
    expect(existsSync(file)).toBe(true);
    const fresh = readFileSync(file, 'utf8');
    expect(fresh).not.toBe(token);
    expect(await letsIn(service.mqttPort, { ...device, deviceAuthToken: fresh })).toBe(true);
    const count = await stored();
    await expect.poll(stored, patience).toBeGreaterThan(count);
    await end(running);
    // A password must not be printed.
    expect(running.stdout()).toContain('a new token');
    expect(running.stdout()).not.toContain(fresh);

    const again = start();
    const later = await stored();
    await expect.poll(stored, patience).toBeGreaterThan(later);
    await end(again);
  });
});
