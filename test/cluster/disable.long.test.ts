import { rmSync } from 'node:fs';
import { connectAsync } from 'mqtt';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { call } from '../../bench/api.ts';
import { readEvents } from '../events/sse.ts';
import { prepareService, type ServiceProcess } from '../faults/service-process.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { hasRedis, startRedis } from '../support/redis.ts';
import { configuration, type Registration, send } from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';
import { runProgram } from '../journeys/process.ts';

const secret = 'a secret that only this test knows, long enough';
const hookSecret = 'the-secret-of-the-broker';
const password = 'correct horse';

// Without Redis, only the database tells one process what another has done.
const buses = hasRedis ? ['PostgreSQL alone', 'Redis'] : ['PostgreSQL alone'];

describe.each(buses)('an account that is disabled, at two processes with %s', (bus) => {
  const dir = makeTemporaryDir();
  const releases: (() => unknown)[] = [];
  let database: TestDatabase;
  let first: ServiceProcess;
  let second: ServiceProcess;
  let variables: Record<string, string>;

  beforeAll(async () => {
    database = await testDatabase();
    variables = { DATABASE_URL: database.url, SECRET: secret };
    if (bus === 'Redis') {
      const redis = await startRedis();
      releases.push(redis.kill);
      variables = { ...variables, REDIS_URL: redis.url };
    }
    const env = { ...variables, BROKER_HOOK_SECRET: hookSecret };
    [first, second] = await Promise.all([
      prepareService({ dir, variables: env }),
      prepareService({ dir, variables: env }),
    ]);
    await first.start();
    await second.start();
  });
  afterAll(async () => {
    await Promise.all([first.kill(), second.kill()]);
    for (const release of releases) await release();
    await database.drop();
    rmSync(dir, { recursive: true, force: true });
  });

  async function operate(command: string, email: string): Promise<void> {
    const args = ['src/cli/account.ts', command, email];
    const program = runProgram(process.execPath, args, { env: variables });
    expect([await program.ended(), program.stderr()]).toEqual([0, '']);
  }
  async function register(email: string) {
    const body = { email, password };
    const path = '/v2/accounts';
    const account = await call<Record<string, string>>(first.url, 'POST', path, { body });
    const token = account['accountAuthToken'] ?? '';
    const registration = await call<Registration>(first.url, 'POST', '/v2/devices', {
      token,
      body: configuration,
    });
    return { email, token, registration };
  }
  const logIn = async (service: ServiceProcess, email: string) =>
    (await send(`${service.url}/v2/accounts/login`, 'POST', { email, password })).status;
  const opens = async (service: ServiceProcess, token: string) =>
    (await send(`${service.url}/v2/accounts`, 'GET', undefined, token)).status;
  const connectTo = (service: ServiceProcess, registration: Registration) =>
    connectDevice({ ...registration, host: '127.0.0.1', port: service.mqttPort });
  /** The CONNACK's code: 0 if the device is accepted. */
  async function knock(service: ServiceProcess, { deviceAuthUuid, ...it }: Registration) {
    const client = await connectAsync(`mqtt://127.0.0.1:${service.mqttPort}`, {
      username: deviceAuthUuid,
      password: it.deviceAuthToken,
      reconnectPeriod: 0,
    }).catch((error: { code?: number }) => error.code ?? -1);
    if (typeof client === 'number') return client;
    await client.endAsync();
    return 0;
  }
  async function askHook(service: ServiceProcess, path: string, body: object) {
    const url = `${service.url}/connector/${path}`;
    return ((await (await send(url, 'POST', body, hookSecret)).json()) as { ok: boolean }).ok;
  }

  it('is locked out at both within a moment, keeps everything, and can be enabled again', async () => {
    const { email, token, registration } = await register(`ada-${bus.length}@example.com`);
    const other = await register(`bob-${bus.length}@example.com`);
    const { deviceAuthUuid: username, deviceAuthToken } = registration;
    const wish = { username, topic: `devices/${username}/up/state`, action: 'publish' };
    for (const service of [first, second]) {
      expect(await askHook(service, 'authenticate', { username, password: deviceAuthToken })).toBe(
        true,
      );
      expect(await askHook(service, 'authorize', wish)).toBe(true);
    }
    const devices = await Promise.all([first, second].map((on) => connectTo(on, registration)));
    const theirs = await connectTo(second, other.registration);
    const path = `/v2/events/${username}/stream`;
    const streams = await Promise.all(
      [first, second].map(({ url }) => readEvents(url + path, token)),
    );
    // One message after the other until the connection is gone. What was acknowledged is stored.
    const ts = Date.now() - 100_000;
    const acknowledged: number[] = [];
    const sending = devices.map(async (device, place) => {
      const closed = new Promise<void>((resolve) => device.client.once('close', () => resolve()));
      for (let val = place; device.client.connected; val += 2) {
        const sent = device.publish('up/measurements', { sId: '0x02', val, ts: ts + val });
        await Promise.race([sent.then(() => acknowledged.push(val)), closed]).catch(
          () => undefined,
        );
      }
    });
    await expect.poll(() => acknowledged.length, { timeout: 60_000 }).toBeGreaterThan(50);

    await operate('disable', email);
    const disabledMs = performance.now();
    await Promise.all(sending);
    await Promise.all(streams.map(({ ended }) => ended));
    // A second on an idle machine.
    expect(performance.now() - disabledMs).toBeLessThan(5_000);
    for (const service of [first, second]) {
      expect([await opens(service, token), await logIn(service, email)]).toEqual([401, 403]);
      expect(await knock(service, registration)).toBe(5);
      expect(await askHook(service, 'authenticate', { username, password: deviceAuthToken })).toBe(
        false,
      );
      expect(await askHook(service, 'authorize', wish)).toBe(false);
      expect([await opens(service, other.token), await logIn(service, other.email)]).toEqual([
        200, 200,
      ]);
    }
    expect(theirs.client.connected).toBe(true);
    await theirs.publish('up/measurements', { sId: '0x01', val: 1 });
    await theirs.end();

    await operate('enable', email);
    for (const service of [first, second]) {
      await expect.poll(() => knock(service, registration), { timeout: 60_000 }).toBe(0);
      expect([await opens(service, token), await logIn(service, email)]).toEqual([401, 200]);
      await expect
        .poll(() => askHook(service, 'authenticate', { username, password: deviceAuthToken }), {
          timeout: 60_000,
        })
        .toBe(true);
      await expect.poll(() => askHook(service, 'authorize', wish), { timeout: 60_000 }).toBe(true);
    }
    const { rows } = await database.db.query<{ val: number }>(
      `select m.val from measurement m join series s on s.id = m.series_id
         join device d on d.id = s.device_id where d.uuid = $1`,
      [username],
    );
    const stored = new Set(rows.map(({ val }) => val));
    expect(acknowledged.filter((val) => !stored.has(val))).toEqual([]);
  });

  it('and disabled while no process runs: it is locked out as soon as they start', async () => {
    const { email, token, registration } = await register(`cy-${bus.length}@example.com`);
    await Promise.all([first.terminate(), second.terminate()]);
    await operate('disable', email);
    await Promise.all([first.start(), second.start()]);
    for (const service of [first, second]) {
      expect([await opens(service, token), await logIn(service, email)]).toEqual([401, 403]);
      expect(await knock(service, registration)).toBe(5);
    }
  });
});
