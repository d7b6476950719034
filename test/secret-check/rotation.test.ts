import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { connectAsync, type MqttClient } from 'mqtt';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import {
  connectHttpDevice,
  connectMqttDevice,
  createTally,
  type Protocol,
  type SimulatedDevice,
} from '../../src/cli/simulate/devices.ts';
import type { Registration } from '../journeys/app.ts';
import { configuration, send } from '../journeys/app.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { databaseKinds, testDatabase, type TestDatabase } from '../support/database.ts';
import { createPrograms, fill, letsIn, logIn } from './program.ts';

const before = 'the first secret of a test, long enough to be one';
const after = 'the second secret of a test, long enough to be one';

/** Each check starts a program. */
const polling = { timeout: 60_000, interval: 200 };

const dir = makeTemporaryDir();
const programs = createPrograms();
afterAll(() => rmSync(dir, { recursive: true }));

describe.each(databaseKinds)('a fleet changes its secret on %s', { timeout: 240_000 }, (kind) => {
  let database: TestDatabase;
  const open: { disconnect(): Promise<void> }[] = [];
  beforeEach(async () => {
    database = await testDatabase(kind);
  });
  afterEach(async () => {
    await Promise.allSettled(open.splice(0).map((device) => device.disconnect()));
    await programs.stopAll();
    await database.drop();
  });

  const withSecret = (SECRET: string, SECRET_PREVIOUS = '') => ({
    DATABASE_URL: database.url,
    DATA_DIR: join(dir, 'data'),
    SECRET,
    SECRET_PREVIOUS,
  });
  const status = async (env: ReturnType<typeof withSecret>) =>
    (await programs.runSecret(env, ['status'])).stdout;

  async function register(url: string, token: string, protocol?: 'http'): Promise<Registration> {
    const body = { ...configuration, ...(protocol ? { protocol } : {}) };
    const answer = await send(`${url}/v2/devices`, 'POST', body, token);
    expect(answer.status).toBe(200);
    return (await answer.json()) as Registration;
  }

  async function connect(
    registration: Registration,
    protocol: Protocol,
    port: number,
  ): Promise<SimulatedDevice> {
    const device = await (protocol === 'http' ? connectHttpDevice : connectMqttDevice)({
      index: 0,
      registration: { ...registration, port },
      protocol,
      insecure: false,
      tally: createTally(),
      signal: new AbortController().signal,
    });
    open.push(device);
    return device;
  }

  test('every device gets its new token, and then the change is complete', async () => {
    const one = await programs.start(withSecret(before));
    const { token, device: first } = await fill(one.url);
    const devices = [first];
    for (let n = 1; n < 20; n += 1)
      devices.push(await register(one.url, token, n >= 14 ? 'http' : undefined));
    await one.stop();

    const both = withSecret(after, before);
    const two = await programs.start(both);
    expect(await status(both)).toContain(
      '20 of 20 devices still have a token of the previous secret.',
    );
    const httpPort = Number(new URL(two.url).port);
    // A device that does not know the topic continues with its old token and receives nothing.
    const plain: MqttClient = await connectAsync(`mqtt://127.0.0.1:${two.mqttPort}`, {
      username: first.deviceAuthUuid,
      password: first.deviceAuthToken,
    });
    const heard: string[] = [];
    plain.on('message', (topic) => heard.push(topic.slice(topic.lastIndexOf('/') + 1)));
    await plain.subscribeAsync(`devices/${first.deviceAuthUuid}/down/#`, { qos: 1 });
    const others = devices.slice(1, 17);
    for (const [place, device] of others.entries())
      await (place >= 13
        ? connect(device, 'http', httpPort)
        : connect(device, place % 2 ? 'mqtt' : 'mqtt5', two.mqttPort));
    const left = async () => /(\d+) of 20 devices/.exec(await status(both))?.[1];
    await expect.poll(left, polling).toBe('4');
    await expect.poll(() => heard, polling).toContain('state');
    expect(heard).not.toContain('token');
    expect(await letsIn(two.mqttPort, first)).toBe(true);
    for (const device of others) expect(await letsIn(two.mqttPort, device)).toBe(false);
    await plain.endAsync();

    // Three are away, and one has not taken it.
    const alone = withSecret(after);
    expect(await programs.expectRefusal(alone)).toContain(
      'SECRET: 4 devices still have a token of the previous secret',
    );
    expect(await programs.runSecret(alone, ['status'])).toMatchObject({ status: 1 });
    await connect(first, 'mqtt', two.mqttPort);
    for (const device of devices.slice(17, 19)) await connect(device, 'http', httpPort);
    await expect.poll(left, polling).toBe('1');
    expect(await programs.expectRefusal(alone)).toContain('SECRET: 1 device still has a token');
    const [last] = devices.slice(19) as [Registration];
    await connect(last, 'http', httpPort);
    await expect
      .poll(() => status(both), polling)
      .toContain('every device has a token of the new secret');
    await Promise.all(open.splice(0).map((device) => device.disconnect()));
    await two.stop();

    const three = await programs.start(alone);
    expect(three.process.stdout()).toContain('the previous one is no longer accepted');
    const answer = await send(`${three.url}/v2/devices`, 'GET', undefined, await logIn(three.url));
    const listed = (await answer.json()) as { devices: { uuid: string; token: string }[] };
    for (const { uuid, token: fresh } of listed.devices)
      expect(
        await letsIn(three.mqttPort, { ...last, deviceAuthUuid: uuid, deviceAuthToken: fresh }),
      ).toBe(true);
  });

  test('three devices that are away delay it, until the operator gives them up', async () => {
    const one = await programs.start(withSecret(before));
    const { token, device } = await fill(one.url);
    const away = [await register(one.url, token), await register(one.url, token), device];
    await one.stop();
    const two = await programs.start(withSecret(after, before));
    // Registered meanwhile, it has the new one from the beginning.
    const fresh = await register(two.url, await logIn(two.url));
    await two.process.printed(/"devices":3[^\n]*SECRET_PREVIOUS is still needed/);
    await two.stop();

    const alone = withSecret(after);
    const refused = await programs.expectRefusal(alone);
    expect(refused).toContain('SECRET: 3 devices still have a token of the previous secret');
    expect(refused).toContain('npm run secret -- accept');
    const no = await programs.runSecret(alone, ['accept'], 'no\n');
    expect(no).toMatchObject({ status: 1 });
    expect(no.stdout).toContain('This invalidates the tokens of 3 devices');
    await programs.expectRefusal(alone);
    expect(await programs.runSecret(alone, ['accept'], 'yes\n')).toMatchObject({ status: 0 });

    const three = await programs.start(alone);
    for (const gone of away) expect(await letsIn(three.mqttPort, gone)).toBe(false);
    expect(await letsIn(three.mqttPort, fresh)).toBe(true);
    await three.stop();
    // The next change does not count those three: it cannot lock them out.
    const next = withSecret(`${after}, and the next`, after);
    await (await programs.start(next)).stop();
    expect(await status(next)).toContain('1 of 4 devices still has a token');
  });
});
