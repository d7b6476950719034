import { afterAll, beforeAll, describe, test } from 'vitest';
import { hasRedis, startRedis, type Redis } from '../support/redis.ts';
import { emptyDatabase, type TestDatabase } from '../support/database.ts';
import {
  password,
  refusedLine,
  startStranger,
  strangers,
  withoutWaiting,
  type Stranger,
} from './refused-start.ts';

const urlOf = (port: number, database = 'x') =>
  `postgresql://someone:${password}@127.0.0.1:${port}/${database}`;

describe.concurrent('DATABASE_URL leads to something other than PostgreSQL', () => {
  test.for([
    ['silent', 'accepts the connection but does not answer', withoutWaiting()],
    ['closing', 'closes the connection without an answer', withoutWaiting()],
    ['http', 'is an HTTP server', {}],
    ['ssh', 'is an SSH server', {}],
    ['mysql', 'is a MySQL or MariaDB server', {}],
    ['echo', 'is an unknown server (it sent ', {}],
    ['rubbish', 'is an unknown server (it sent ', {}],
  ] as const)('%s', async ([kind, said, env], { expect }) => {
    const stranger = await startStranger(strangers[kind] ?? (() => undefined));
    try {
      const line = await refusedLine({ DATABASE_URL: urlOf(stranger.port), ...env });
      // A promised time, so it is asserted.
      expect(stranger.secondsSinceMet()).toBeLessThan(9);
      expect(line).toMatch(/^DATABASE_URL: expected PostgreSQL, but .*: correct host and port\.$/);
      expect(line).toContain(`127.0.0.1:${stranger.port}`);
      expect(line).toContain(said);
    } finally {
      stranger.close();
    }
  });

  test.skipIf(!hasRedis)('a Redis', async ({ expect }) => {
    const redis: Redis = await startRedis();
    try {
      const line = await refusedLine({ DATABASE_URL: urlOf(redis.port), ...withoutWaiting() });
      expect(line).toContain(`127.0.0.1:${redis.port} accepts the connection but does not answer`);
    } finally {
      await redis.kill();
    }
  });

  test('nothing listens there, or the host is unknown', async ({ expect }) => {
    const env = withoutWaiting();
    expect(await refusedLine({ DATABASE_URL: urlOf(1), ...env })).toBe(
      'DATABASE_URL: nothing listens at 127.0.0.1:1 (ECONNREFUSED): start the database, or correct host and port.',
    );
    const nowhere = `postgresql://me:${password}@nowhere.invalid/x`;
    expect(await refusedLine({ DATABASE_URL: nowhere, ...env })).toMatch(
      /the host of nowhere\.invalid:5432 is unknown/,
    );
    const socket = `postgresql://me:${password}@%2Fnowhere/x`;
    expect(await refusedLine({ DATABASE_URL: socket, ...env })).toMatch(
      /^DATABASE_URL: \/nowhere\/\.s\.PGSQL\.5432 does not exist \(ENOENT\)/,
    );
  });
});

describe.concurrent('DATABASE_URL leads to a server that refuses the service', () => {
  let database: TestDatabase;
  let port = 0;
  beforeAll(async () => {
    database = await emptyDatabase();
    port = Number(new URL(database.url).port);
    await database.db.query(`create role shut_out login password '${password}'`);
    const name = new URL(database.url).pathname.slice(1);
    await database.db.query(`revoke connect on database ${name} from public`);
  });
  afterAll(async () => {
    await database.db.query('drop role shut_out');
    await database.drop();
  });
  const withUser = (change: (url: URL) => void) => {
    const url = new URL(database.url);
    change(url);
    return { DATABASE_URL: url.href };
  };

  test('with a wrong password, or none', async ({ expect }) => {
    expect(await refusedLine(withUser((url) => (url.password = password)))).toMatch(
      /^DATABASE_URL: 127\.0\.0\.1:\d+ does not accept this password for role "sensorium"/,
    );
    expect(await refusedLine(withUser((url) => (url.password = '')))).toMatch(
      /requires a password for role "sensorium", but the URL has none/,
    );
  });

  test('to a database that does not exist', async ({ expect }) => {
    expect(await refusedLine(withUser((url) => (url.pathname = '/absent')))).toMatch(
      /has no database "absent": create it, or correct the name/,
    );
  });

  test('without the right to connect', async ({ expect }) => {
    const line = await refusedLine(
      withUser((url) => {
        url.username = 'shut_out';
        url.password = password;
      }),
    );
    expect(line).toMatch(
      /role "shut_out" may not connect to database "(\w+)": run GRANT CONNECT ON DATABASE "\1" TO "shut_out"\.$/,
    );
  });

  test('over TLS, which it does not support', async ({ expect }) => {
    expect(await refusedLine(withUser((url) => (url.search = 'sslmode=verify-full')))).toMatch(
      new RegExp(`127\\.0\\.0\\.1:${port} has TLS disabled`),
    );
    const missing = withUser(
      (url) => (url.search = 'sslmode=verify-full&sslrootcert=/nowhere.pem'),
    );
    expect(await refusedLine(missing)).toMatch(/^DATABASE_URL: it cannot be used .*\/nowhere\.pem/);
  });
});

test("the operator's commands report the same", async ({ expect }) => {
  const stranger: Stranger = await startStranger(strangers['closing'] ?? (() => undefined));
  const env = { DATABASE_URL: urlOf(stranger.port), ...withoutWaiting() };
  const ofService = await refusedLine(env);
  expect(await refusedLine(env, ['src/cli/account.ts', 'list'])).toBe(ofService);
  stranger.close();
});
