import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest';
import { deriveSecretCheck } from '../../src/config/keys.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { databaseKinds, testDatabase, type TestDatabase } from '../support/database.ts';
import { hasRedis, startRedis } from '../support/redis.ts';
import {
  createPrograms,
  fill,
  letsIn,
  logIn,
  readChecks,
  statusOf,
  type Started,
} from './program.ts';

const first = 'the first secret of a test, long enough to be one';
const second = 'the second secret of a test, long enough to be one';
const third = 'the third secret of a test, long enough to be one';

const dir = makeTemporaryDir();
const programs = createPrograms();
afterAll(() => rmSync(dir, { recursive: true }));

// Each starts programs again and again, which takes long if others load the machine.
const options = { timeout: 240_000 };

describe.each(databaseKinds)('processes on one database on %s', options, (kind) => {
  let database: TestDatabase;
  beforeEach(async () => {
    database = await testDatabase(kind);
  });
  afterEach(async () => {
    await programs.stopAll();
    await database.drop();
  });

  const withSecret = (SECRET: string, SECRET_PREVIOUS = '') => ({
    DATABASE_URL: database.url,
    DATA_DIR: join(dir, 'data'),
    SECRET,
    SECRET_PREVIOUS,
  });
  const noted = async () => (await readChecks(database.db)).map(({ value }) => value);

  test.each([
    ['first', 0, 1],
    ['last', 1, 0],
  ])('change it one after another, the one with the device %s', async (_, one, other) => {
    const processes: Started[] = [
      await programs.start(withSecret(first)),
      await programs.start(withSecret(first)),
    ];
    const [holder] = processes as [Started];
    const { token, device } = await fill(holder.url);
    const expectOpen = async () => {
      for (const { url, mqttPort } of processes) {
        expect(await statusOf(url, token)).toBe(200);
        expect(await letsIn(mqttPort, device)).toBe(true);
      }
    };
    const restart = async (place: number, ...secrets: [string, string?]) => {
      await processes[place]?.stop();
      processes[place] = await programs.start(withSecret(...secrets));
    };
    await restart(one, second, first);
    await expectOpen();
    expect(await noted()).toEqual([second, first].map(deriveSecretCheck));
    // A crash meanwhile: the other one returns with its old settings, and ends nothing.
    await restart(other, first);
    await expectOpen();
    expect(await noted()).toEqual([second, first].map(deriveSecretCheck));
    await restart(other, second, first);
    await expectOpen();

    // The device has no new token yet, so the operator has to say that it may be locked out.
    await processes[one]?.stop();
    expect(await programs.expectRefusal(withSecret(second))).toContain('1 device still has');
    await programs.runSecret(withSecret(second), ['accept'], 'yes\n');
    await restart(one, second);
    expect(await noted()).toEqual([deriveSecretCheck(second)]);
    // A process with old settings does not begin the change anew.
    await restart(other, second, first);
    expect(await noted()).toEqual([deriveSecretCheck(second)]);
    await restart(other, second);
    for (const { url, mqttPort } of processes) {
      expect(await letsIn(mqttPort, device)).toBe(false);
      expect(await statusOf(url, token)).toBe(401);
      expect(await statusOf(url, await logIn(url))).toBe(200);
    }
    expect(await programs.expectRefusal(withSecret(first))).toContain('SECRET: is not the secret');
  });

  test('tell all others of it first, and then nobody notices the change', async () => {
    const one = await programs.start(withSecret(first, second));
    const other = await programs.start(withSecret(first, second));
    expect(await noted()).toEqual([first, second].map(deriveSecretCheck));
    const { token } = await fill(one.url);
    await one.stop();
    const changed = await programs.start(withSecret(second, first));
    // Its new tokens are valid in the process that is still to be changed.
    const newToken = await logIn(changed.url);
    expect(await statusOf(other.url, newToken)).toBe(200);
    expect(await statusOf(changed.url, token)).toBe(200);
    expect(await noted()).toEqual([second, first].map(deriveSecretCheck));
  });

  test('of version 0.1.0, which recorded nothing, contribute the secret that they had', async () => {
    const service = await programs.start(withSecret(first));
    const { token, device } = await fill(service.url);
    await service.stop();
    await database.db.query('delete from secret_check');

    const upgraded = await programs.start(withSecret(first));
    expect(upgraded.process.stdout()).toContain("SECRET: recorded as this database's secret");
    expect(await statusOf(upgraded.url, token)).toBe(200);
    expect(await letsIn(upgraded.mqttPort, device)).toBe(true);
    await upgraded.stop();
    expect(await noted()).toEqual([deriveSecretCheck(first)]);
    // Reported only once.
    const again = await programs.start(withSecret(first));
    expect(again.process.stdout()).not.toContain('noted');
  });

  test('that start at once with two secrets, with devices there: one starts', async () => {
    const service = await programs.start(withSecret(first));
    await fill(service.url);
    await service.stop();
    await database.db.query('delete from secret_check');
    const secrets = [second, third];
    const both = secrets.map((secret) => programs.launch(withSecret(secret)));
    const ready = await Promise.all(
      both.map((program) =>
        program.printed(/"Ready\."/).then(
          () => true,
          () => false,
        ),
      ),
    );
    expect(ready.filter(Boolean)).toHaveLength(1);
    const winner = ready.indexOf(true);
    expect(await both[1 - winner]?.ended()).toBe(1);
    expect(both[1 - winner]?.stderr()).toMatch(/^SECRET: is not the secret/);
    expect(await noted()).toEqual([deriveSecretCheck(secrets[winner] ?? '')]);
  });

  test.skipIf(!hasRedis)('end with a secret that is accepted, in Redis too', async () => {
    const redis = await startRedis();
    try {
      const running = { ...withSecret(first), REDIS_URL: redis.url };
      const accepting = { ...withSecret(second), REDIS_URL: redis.url };
      const service = await programs.start(running);
      const { token, device } = await fill(service.url);
      const said = await programs.runSecret(accepting, ['accept'], 'yes\n');
      expect(said).toMatchObject({ status: 0, stderr: '' });
      expect(said.stdout).toMatch(
        /^SECRET: becomes .*\nThis invalidates the tokens of 1 device and 2 sessions:/,
      );
      expect(said.stdout).toMatch(/^Restart every process of the service/m);
      expect(await noted()).toEqual([deriveSecretCheck(second)]);
      // The running process keeps its keys, but that session has ended.
      expect(await statusOf(service.url, token)).toBe(401);
      await service.stop();
      expect(await programs.expectRefusal(running)).toContain('SECRET: is not the secret');
      const restarted = await programs.start(accepting);
      expect(await letsIn(restarted.mqttPort, device)).toBe(false);
      expect(await statusOf(restarted.url, await logIn(restarted.url))).toBe(200);
    } finally {
      await programs.stopAll();
      await redis.kill();
    }
  });
});
