import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import pg from 'pg';
import { migrate } from '../../src/db/migrate.ts';
import { findTimescaleBinDir, startThrowAwayCluster, type Cluster } from '../support/cluster.ts';
import { hasRedis, startRedis, type Redis } from '../support/redis.ts';
import { withoutStandby } from '../support/synchronous.ts';
import { runOn } from '../support/template.ts';
import { configuration, openApp, send, type Registration } from './app.ts';
import { testService, type TestService } from './service.ts';

type Status = {
  status: string;
  degraded: string[];
  reasons?: { name: string; reason: string; sinceTs: number }[];
};

async function statusOf({ url }: TestService): Promise<Status> {
  return (await (await fetch(`${url}/v2/status`)).json()) as Status;
}

/** What status, metrics and readiness report of this part; null: nothing. */
async function said(service: TestService, part: string) {
  const { degraded, reasons = [] } = await statusOf(service);
  const reason = reasons.find(({ name }) => name === part)?.reason ?? null;
  const metrics = await (await fetch(`http://127.0.0.1:${service.metricsPort}/metrics`)).text();
  const isCounted = metrics.includes(`service_degraded{what="${part}",reason="${reason}"} 1`);
  const { status: ready } = await fetch(`${service.url}/readyz`);
  return { isNamed: degraded.includes(part), reason, isCounted, ready };
}

const nothing = { isNamed: false, reason: null, isCounted: false, ready: 200 };
const named = (reason: string, ready = 503) => ({ isNamed: true, reason, isCounted: true, ready });
const metrics = { METRICS_PORT: '0' };

describe.each([false, ...(findTimescaleBinDir() === null ? [] : [true])])(
  'a database that cannot store anything (TimescaleDB: %s)',
  (timescaledb) => {
    let cluster: Cluster;
    let service: TestService;

    beforeAll(async () => {
      cluster = await startThrowAwayCluster({ timescaledb, durable: true });
      await migrate(cluster.url(), { log: { info: () => undefined, warn: () => undefined } });
      service = await testService({ DATABASE_URL: cluster.url(), ...metrics });
    });
    afterAll(async () => {
      await service.close();
      await cluster.remove();
    });
    const writes = () => said(service, 'database-writes');

    it('is well at first, and says when the last commit was', async () => {
      await expect.poll(writes).toEqual(nothing);
      expect(await statusOf(service)).toMatchObject({ status: 'online', degraded: [] });
      const text = await (await fetch(`http://127.0.0.1:${service.metricsPort}/metrics`)).text();
      const [, seconds] = /^database_last_commit_timestamp_seconds (\S+)$/m.exec(text) ?? [];
      expect(Number(seconds)).toBeGreaterThan(1_700_000_000);
    });

    it('names a synchronous standby that is away', async () => {
      const standby = withoutStandby(cluster);
      await standby.requireStandby();
      await expect.poll(writes).toEqual(named('standby-away'));
      await standby.letGo();
      await expect.poll(writes).toEqual(nothing);
    });

    it('names a lock that blocks everything', async () => {
      const holder = new pg.Client({ connectionString: cluster.url() });
      await holder.connect();
      await holder.query(
        `begin; set local search_path = sensorium_0_2_0, public; lock table device_state`,
      );
      await expect.poll(writes).toEqual(named('locked'));
      await holder.query('rollback');
      await holder.end();
      await expect.poll(writes).toEqual(nothing);
    });

    it('names a full disk by what cannot be stored, although a commit without rows succeeds', async () => {
      const app = await openApp(service.url);
      const device = await app.call<Registration>('POST', '/v2/devices', {
        ...configuration,
        protocol: 'http',
      });
      const run = (sql: string) =>
        runOn(cluster.url(), (client) =>
          client.query(`set search_path = sensorium_0_2_0, public; ${sql}`),
        );
      await run(`create function full_disk() returns trigger language plpgsql
                   as $$ begin raise exception using errcode = '53100'; end $$;
                 create trigger full_disk before insert on measurement execute function full_disk()`);
      const url = `http://${device.host}:${device.port}/devices/${device.deviceAuthUuid}/up/measurements`;
      const posted = send(url, 'POST', { sId: '0x01', val: 1 }, device.deviceAuthToken);
      await expect
        .poll(writes)
        .toMatchObject({ isNamed: true, reason: 'disk-full', isCounted: true });
      await run('drop function full_disk cascade');
      await posted;
      await expect.poll(writes).toEqual(nothing);
    });

    it('names a database that became read-only', async () => {
      const set = (to: string) =>
        runOn(cluster.url(), async (client) => {
          await client.query('set default_transaction_read_only = off');
          await client.query(`alter system set default_transaction_read_only = ${to}`);
          await client.query('select pg_reload_conf()');
        });
      await set('on');
      await expect.poll(writes).toEqual(named('read-only'));
      await set('off');
      await expect.poll(writes).toEqual(nothing);
    });
  },
);

describe.skipIf(!hasRedis)('a Redis that is read-only', () => {
  let redis: Redis;
  let service: TestService;
  beforeAll(async () => {
    redis = await startRedis();
    service = await testService({ REDIS_URL: redis.url, ...metrics });
  });
  afterAll(async () => {
    await service.close();
    await redis.kill();
  });
  const sessions = () => said(service, 'sessions');

  it('is named, and stops nothing that does not need it', async () => {
    await expect.poll(sessions).toEqual(nothing);
    const { Redis: Client } = await import('ioredis');
    const client = new Client(redis.url);
    await client.replicaof('127.0.0.1', 1);
    await expect.poll(sessions).toEqual(named('read-only', 200));
    await client.replicaof('NO', 'ONE');
    await expect.poll(sessions).toEqual(nothing);
    client.disconnect();
  });
});
