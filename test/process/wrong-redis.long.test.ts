import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, test } from 'vitest';
import { hasOpenssl, makeCertificate } from '../support/certificate.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { emptyDatabase } from '../support/database.ts';
import { hasRedis, startRedis, startSentinel, type Redis } from '../support/redis.ts';
import { runProgram } from '../journeys/process.ts';
import { password, refusedLine, startStranger, strangers } from './refused-start.ts';

describe.concurrent('REDIS_URL leads to something other than Redis', () => {
  test.for([
    ['http', 'is an HTTP server'],
    ['ssh', 'is an SSH server'],
    ['mysql', 'is a MySQL or MariaDB server'],
    ['rubbish', 'is an unknown server (it sent '],
  ] as const)('%s', async ([kind, said], { expect }) => {
    const stranger = await startStranger(strangers[kind] ?? (() => undefined));
    try {
      const url = `redis://:${password}@127.0.0.1:${stranger.port}`;
      const line = await refusedLine({ REDIS_URL: url });
      // A promised time, so it is asserted.
      expect(stranger.secondsSinceMet()).toBeLessThan(9);
      expect(line).toMatch(/^REDIS_URL: expected Redis, but at .*: correct host and port\.$/);
      expect(line).toContain(`at 127.0.0.1:${stranger.port} ${said}`);
    } finally {
      stranger.close();
    }
  });

  test('a PostgreSQL', async ({ expect }) => {
    const database = await emptyDatabase();
    const { port } = new URL(database.url);
    expect(await refusedLine({ REDIS_URL: `redis://127.0.0.1:${port}` })).toBe(
      `REDIS_URL: expected Redis, but at 127.0.0.1:${port} is a PostgreSQL server: correct host and port.`,
    );
    await database.drop();
  });
});

describe.skipIf(!hasRedis)('REDIS_URL leads to a Redis that refuses', { concurrent: true }, () => {
  const dir = makeTemporaryDir();
  let closed: Redis;
  let open: Redis;
  let replica: Redis;
  let sentinel: Redis;
  let cluster: Redis;
  beforeAll(async () => {
    const mayNotWrite = ['--user', 'poor', 'on', '>poor', '+@all', '-@write', '~*', '&*'];
    [closed, open, sentinel, cluster] = await Promise.all([
      startRedis(() => ['--requirepass', 'right', ...mayNotWrite]),
      startRedis(),
      startSentinel(dir),
      startRedis(() => ['--cluster-enabled', 'yes', '--dir', dir]),
    ]);
    replica = await startRedis(() => ['--replicaof', '127.0.0.1', String(open.port)]);
  });
  afterAll(async () => {
    await Promise.all([closed, open, replica, sentinel, cluster].map((redis) => redis.kill()));
    rmSync(dir, { recursive: true });
  });

  const lineOf = (redis: Redis, change: (url: URL) => void = () => undefined) => {
    const url = new URL(redis.url);
    change(url);
    return refusedLine({ REDIS_URL: url.href });
  };

  test('requires a password', async ({ expect }) => {
    expect(await lineOf(closed)).toMatch(
      /^REDIS_URL: 127\.0\.0\.1:\d+ requires a password: write redis:\/\/:password@host:port/,
    );
    expect(await lineOf(closed, (url) => (url.password = password))).toMatch(
      /does not accept this user or password: correct them\.$/,
    );
  });

  test('does not let its user write', async ({ expect }) => {
    const line = await lineOf(closed, (url) => {
      url.username = 'poor';
      url.password = 'poor';
    });
    expect(line).toMatch(/NOPERM.*its ACL must allow the keys and channels sensorium:\*\.$/);
  });

  test('is read-only', async ({ expect }) => {
    expect(await lineOf(replica)).toMatch(/is a read-only replica: name the primary\.$/);
  });

  test('has no such database', async ({ expect }) => {
    expect(await lineOf(open, (url) => (url.pathname = '/99'))).toMatch(
      /has no database with the number/,
    );
  });

  test('belongs to a cluster, or is a Sentinel', async ({ expect }) => {
    expect(await lineOf(cluster)).toMatch(/belongs to a Redis Cluster/);
    expect(await lineOf(sentinel)).toMatch(/perhaps a Sentinel/);
  });

  test('does not support TLS', async ({ expect }) => {
    expect(await lineOf(open, (url) => (url.protocol = 'rediss:'))).toMatch(
      /is a Redis server without TLS: use redis:\/\//,
    );
  });

  test("gets the same from the operator's commands", async ({ expect }) => {
    const env = { REDIS_URL: closed.url };
    expect(await refusedLine(env, ['src/cli/account.ts', 'list'])).toBe(await refusedLine(env));
  });
});

describe.skipIf(!hasRedis || !hasOpenssl)('REDIS_URL and TLS', () => {
  const dir = makeTemporaryDir();
  let redis: Redis;
  beforeAll(async () => {
    const files = { certFile: join(dir, 'cert.pem'), keyFile: join(dir, 'key.pem') };
    await makeCertificate('localhost', files);
    const certificate = ['--tls-cert-file', files.certFile, '--tls-key-file', files.keyFile];
    const authority = ['--tls-ca-cert-file', files.certFile, '--tls-auth-clients', 'no'];
    redis = await startRedis((port) =>
      ['--port', '0', '--tls-port', String(port)].concat(certificate, authority),
    );
  });
  afterAll(async () => {
    await redis.kill();
    rmSync(dir, { recursive: true });
  });

  test('a certificate of an unknown authority', async ({ expect }) => {
    const line = await refusedLine({ REDIS_URL: redis.url.replace('redis:', 'rediss:') });
    expect(line).toMatch(/^REDIS_URL: the certificate of 127.* NODE_EXTRA_CA_CERTS/);
  });

  test('a port that expects TLS', async ({ expect }) => {
    expect(await refusedLine({ REDIS_URL: redis.url })).toMatch(/expects TLS: use rediss:\/\/\.$/);
  });
});

test('a Redis that is away or silent does not prevent the start', async ({ expect }) => {
  const database = await emptyDatabase();
  const silent = await startStranger(strangers['silent'] ?? (() => undefined));
  for (const port of [1, silent.port]) {
    const program = runProgram(process.execPath, ['src/main.ts'], {
      env: {
        DATABASE_URL: database.url,
        REDIS_URL: `redis://127.0.0.1:${port}`,
        SECRET: 'a secret for tests that is long enough to be one',
        HTTP_PORT: '0',
        MQTT_PORT: '0',
      },
    });
    await program.printed(
      /127\.0\.0\.1:\d+[^\n]*Redis is unreachable; starting without it[^]*"Ready\."/,
    );
    program.child.kill('SIGTERM');
    expect(await program.ended()).toBe(0);
  }
  silent.close();
  await database.drop();
});
