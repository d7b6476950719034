import { spawnSync } from 'node:child_process';
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest';
import { connectFirst } from '../../src/db/connect.ts';
import { inUse } from '../../src/db/embedded/cluster.ts';
import { mayPass } from '../../src/start-error.ts';
import { startProxy, type Proxy } from '../faults/proxy.ts';
import { runProgram, type Running } from '../journeys/process.ts';
import { startThrowAwayCluster, type Cluster } from '../support/cluster.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { password, startStranger, strangers } from './refused-start.ts';

let database: TestDatabase;
let proxy: Proxy;
let service: Running | undefined;

beforeAll(async () => {
  database = await testDatabase();
  proxy = await startProxy(Number(new URL(database.url).port));
});
afterEach(async () => {
  proxy.heal();
  if (service?.child.exitCode === null) service.child.kill('SIGKILL');
  await service?.ended();
});
afterAll(async () => {
  await proxy.close();
  await database.drop();
});

const behindProxy = () => {
  const url = new URL(database.url);
  url.port = String(proxy.port);
  return url.href;
};

function start(databaseUrl: string): Running {
  service = runProgram(process.execPath, ['src/main.ts'], {
    env: {
      DATABASE_URL: databaseUrl,
      SECRET: 'a secret for tests that is long enough to be one',
      HTTP_HOST: '127.0.0.1',
      HTTP_PORT: '0',
      MQTT_HOST: '127.0.0.1',
      MQTT_PORT: '0',
    },
  });
  return service;
}

const linesOf = (program: Running, event: string) =>
  program
    .stdout()
    .split('\n')
    .filter((line) => line.includes(`"${event}"`))
    .map((line) => JSON.parse(line) as { why?: string });

test('a service that starts before its database logs that once, and continues when the database is there', async () => {
  const cluster: Cluster = await startThrowAwayCluster();
  try {
    await cluster.halt('fast');
    const early = start(cluster.url());
    await early.printed(/"database\.awaited"/);
    await cluster.start();
    await early.printed(/"Ready\."/);
    expect(linesOf(early, 'database.awaited')).toMatchObject([
      { why: expect.stringContaining(`nothing listens at 127.0.0.1:${cluster.port}`) as unknown },
    ]);
    early.child.kill('SIGTERM');
    expect(await early.ended()).toBe(0);
  } finally {
    await cluster.remove();
  }
});

test.each([
  ['no longer answers once its tables are there', () => proxy.deafen('statement_timeout')],
  ['is lost in the middle of the migrations', () => proxy.cut('pg_try_advisory_lock')],
])('a database that %s is waited for', async (_name, disturb) => {
  disturb();
  const disturbed = start(behindProxy());
  await disturbed.printed(/"database\.awaited"/);
  proxy.heal();
  await disturbed.printed(/"Ready\."/);
  expect(linesOf(disturbed, 'database.awaited')).toHaveLength(1);
  disturbed.child.kill('SIGTERM');
  expect(await disturbed.ended()).toBe(0);
});

test('a service that is asked to stop while it waits stops', async () => {
  proxy.cut();
  const waiting = start(behindProxy());
  await waiting.printed(/"database\.awaited"/);
  waiting.child.kill('SIGTERM');
  expect(await waiting.ended()).toBe(0);
  expect(waiting.stderr()).toBe('');
  expect(linesOf(waiting, 'stop.finished')).toHaveLength(1);
  expect(linesOf(waiting, 'service.ready')).toEqual([]);
});

/** Whether a start waits for this URL. */
async function isAwaited(url: string): Promise<boolean> {
  const error: unknown = await connectFirst(url).then(
    (client) => client.end(),
    (reason: unknown) => reason,
  );
  expect(error).toBeInstanceOf(Error);
  return mayPass(error);
}

test.each([
  ['silent', true],
  ['closing', true],
  ['http', false],
] as const)('of what is no PostgreSQL, one that is %s is waited for: %s', async (kind, awaited) => {
  const stranger = await startStranger(strangers[kind] ?? (() => undefined));
  expect(await isAwaited(`postgresql://me@127.0.0.1:${stranger.port}/x`)).toBe(awaited);
  stranger.close();
});

test('a start does not wait for what needs a fix', async () => {
  const changed = (change: (url: URL) => void) => {
    const url = new URL(database.url);
    change(url);
    return url.href;
  };
  const role = 'role_without_connections';
  await database.db.query(`create role ${role} login password '${password}' connection limit 0`);
  try {
    expect(await isAwaited(changed((url) => (url.password = password)))).toBe(false);
    expect(await isAwaited(changed((url) => (url.pathname = '/absent')))).toBe(false);
    expect(await isAwaited('postgresql://me@nowhere.invalid/x')).toBe(true);
    // Sessions of a killed process remain for a while.
    const full = changed((url) => Object.assign(url, { username: role, password }));
    expect(await isAwaited(full)).toBe(true);
  } finally {
    await database.db.query(`drop role ${role}`);
  }
});

test('a start waits for a data directory if the process that has it is gone', () => {
  const { pid } = spawnSync(process.execPath, ['--version']);
  expect(mayPass(inUse('/data', `process ${pid}`))).toBe(true);
  expect(mayPass(inUse('/data', `process ${process.pid}`))).toBe(false);
  expect(mayPass(inUse('/data', 'somebody'))).toBe(false);
});
