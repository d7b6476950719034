import { afterAll, beforeAll, expect, test } from 'vitest';
import { prepareService, type ServiceProcess } from '../faults/service-process.ts';
import { ask, openAccount } from '../idempotency/repeat.ts';
import { configuration, thresholdPurpose } from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';
import type { Registration } from '../journeys/app.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';

const dir = makeTemporaryDir();
let database: TestDatabase;
let service: ServiceProcess;
let other: ServiceProcess;
let token: string;

beforeAll(async () => {
  database = await testDatabase();
  const options = { dir, variables: { DATABASE_URL: database.url } };
  service = await prepareService(options);
  other = await prepareService(options);
  await service.start();
  token = await openAccount(service.url);
});
afterAll(async () => {
  await service?.kill();
  await other?.kill();
  await database?.drop();
});

const call = async (url: string, method: string, path: string, body?: unknown) => {
  const answer = await ask(url, { method, path, token, body });
  if (answer.status !== 200) throw new Error(`${path}: ${answer.text}`);
  return answer.body;
};

async function register(count: number): Promise<Registration[]> {
  const devices = Array.from({ length: count }, () => configuration);
  const { devices: registered } = await call(service.url, 'POST', '/v2/devices/batch', { devices });
  return registered as Registration[];
}

test('a job continues in another process, and processes each device once', async () => {
  const { db } = database;
  await register(200);
  // Counts each change of labels, to notice a device that is processed twice.
  await db.query('create table turn (device_id bigint not null)');
  await db.query(`
    create function count_turn() returns trigger language plpgsql as
      $$ begin insert into turn values (new.id); return new; end $$`);
  await db.query(`
    create trigger count_turn after update of labels on device
      for each row execute function count_turn()`);
  const action = { action: 'label', labels: ['x'], filter: {} };
  const { jobId } = await call(service.url, 'POST', '/v2/devices/actions', action);
  const path = `/v2/jobs/${String(jobId)}`;
  const done = async () => Number((await call(service.url, 'GET', path))['done']);
  await expect.poll(done, { timeout: 60_000, interval: 5 }).toBeGreaterThan(0);
  await service.kill();
  const { rows } = await db.query<{ done: number; state: string }>('select done, state from job');
  expect(rows).toMatchObject([{ state: 'running' }]);
  expect(rows[0]?.done).toBeLessThan(200);

  await other.start();
  const state = async () => (await call(other.url, 'GET', path))['state'];
  await expect.poll(state, { timeout: 60_000 }).toBe('done');
  expect(await call(other.url, 'GET', path)).toMatchObject({ done: 200, of: 200, failed: [] });
  const { rows: turns } = await db.query<{ all: number; each: number }>(
    'select count(*) as all, count(distinct device_id) as each from turn',
  );
  expect(turns).toEqual([{ all: 200, each: 200 }]);
  await other.kill();
  await service.start();
});

test('a profile for many is installed on each device once, and taken back from each, by two processes', async () => {
  const { db } = database;
  const uuids = (await register(200)).map(({ deviceAuthUuid }) => deviceAuthUuid);
  const half = uuids.slice(0, 100);
  await call(service.url, 'POST', '/v2/devices/profile', {
    deviceAuthUuids: half,
    purposes: [thresholdPurpose(1, 5)],
  });
  const run = async (body: object, last: number) => {
    const { jobId } = await call(service.url, 'POST', '/v2/devices/actions', body);
    const path = `/v2/jobs/${String(jobId)}`;
    const done = async (url: string) => Number((await call(url, 'GET', path))['done']);
    await expect.poll(() => done(service.url), { timeout: 60_000, interval: 5 }).toBeGreaterThan(0);
    await service.kill();
    const { rows } = await db.query<{ done: number }>('select done from job where uuid = $1', [
      jobId,
    ]);
    expect(rows[0]?.done).toBeLessThan(200);
    await other.start();
    await expect.poll(() => done(other.url), { timeout: 60_000 }).toBe(200);
    expect(await call(other.url, 'GET', path)).toMatchObject({ state: 'done', failed: [] });
    const installed = await db.query<{ count: number }>(
      `select count(*)::integer as count from device_profile where device_id in (
         select id from device where uuid = any($1::uuid[]))`,
      [uuids],
    );
    expect(installed.rows).toEqual([{ count: last }]);
    await service.start();
    await other.kill();
    return jobId;
  };
  const action = { action: 'profile', purposes: [thresholdPurpose(1, 9)], deviceAuthUuids: uuids };
  const jobId = await run(action, 300);
  await run({ action: 'restore', jobId }, 500);
  const { rows } = await db.query<{ isGt: string | null; count: number }>(
    `select c.purposes #>> '{0,states,0,events,0,causes,0,thresholds,isGt}' as "isGt",
            count(*)::integer as count
       from device d
       join device_profile w on w.device_id = d.id and w.state = 'pending'
       join profile p on p.id = w.profile_id
       join profile_content c on c.id = p.content_id
      where d.uuid = any($1::uuid[])
      group by 1 order by 1`,
    [uuids],
  );
  expect(rows).toEqual([
    { isGt: '5', count: 100 },
    { isGt: null, count: 100 },
  ]);
});

test("a label's limits reach each device once, in two processes, also those that get the label meanwhile", async () => {
  const { db } = database;
  const devices = Array.from({ length: 200 }, () => ({ ...configuration, labels: ['freezer'] }));
  await call(service.url, 'POST', '/v2/devices/batch', { devices });
  const { purposeUuid } = await call(service.url, 'POST', '/v2/purposes', thresholdPurpose(1, -18));
  await other.start();
  const limits = [{ label: 'freezer', purposeUuid }];
  const path = '/v2/devices/labels/limits';
  const [{ jobId }] = await Promise.all([
    call(service.url, 'PUT', path, { limits }),
    ...Array.from({ length: 20 }, async (_, n) => {
      const { url } = n % 2 === 0 ? service : other;
      const labels = n < 10 ? ['freezer'] : [];
      const body = { ...configuration, labels };
      const { deviceAuthUuid } = await call(url, 'POST', '/v2/devices', body);
      if (n >= 10)
        await call(url, 'PUT', `/v2/devices/${String(deviceAuthUuid)}/labels`, {
          labels: ['freezer'],
        });
    }),
  ]);
  await service.kill();
  const state = async () => (await call(other.url, 'GET', `/v2/jobs/${String(jobId)}`))['state'];
  await expect.poll(state, { timeout: 60_000 }).toBe('done');
  const { rows } = await db.query<{ labelled: number; limited: number; installed: number }>(
    `select count(distinct d.id)::integer as labelled,
            (count(distinct d.id) filter (where w.label = 'freezer'))::integer as limited,
            count(w.device_id)::integer as installed
       from device d
       left join device_profile w on w.device_id = d.id
      where d.labels @> '{freezer}'`,
  );
  expect(rows).toEqual([{ labelled: 220, limited: 220, installed: 220 }]);
  await service.start();
  await other.kill();
});

const waiters = `
  from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
async function waiting(): Promise<number> {
  const { rows } = await database.db.query(`select ${waiters}`);
  return rows.length;
}

test('a removed device is gone with the answer; its history goes later, also after a restart', async () => {
  const { db } = database;
  const [device] = await register(1);
  if (!device) throw new Error('No device was registered.');
  const { deviceAuthUuid } = device;
  const client = await connectDevice(device);
  for (const val of [1, 2, 3]) await client.publish('up/measurements', { sId: '0x01', val });
  const found = await db.query<{ id: number }>('select id from device where uuid = $1', [
    deviceAuthUuid,
  ]);
  const id = found.rows[0]?.id;
  const left = async () => {
    const { rows } = await db.query<{ count: number }>(
      `select count(*) as count from measurement m join series s on s.id = m.series_id
        where s.device_id = $1`,
      [id],
    );
    return rows[0]?.count;
  };
  expect(await left()).toBe(3);
  const closed = new Promise<void>((resolve) => client.client.once('close', () => resolve()));
  // Nobody can delete these rows while they are locked.
  await db.transaction(async (tx) => {
    await tx.query(
      `select from measurement m join series s on s.id = m.series_id
        where s.device_id = $1 for update of m`,
      [id],
    );
    await call(service.url, 'DELETE', `/v2/devices/${deviceAuthUuid}`);
    await closed;
    for (const path of [
      `/v2/measurements/${deviceAuthUuid}`,
      `/v2/events/${deviceAuthUuid}`,
      `/v2/devices/${deviceAuthUuid}/configuration`,
      `/v2/devices/${deviceAuthUuid}/rejections`,
    ]) {
      const { status } = await ask(service.url, { method: 'GET', path, token });
      expect([path, status]).toEqual([path, 404]);
    }
    const { latest } = await call(service.url, 'GET', '/v2/measurements/latest');
    expect(latest).toEqual([]);
    const many = `/v2/measurements?devices=${deviceAuthUuid}&end=9999999999999`;
    const { text } = await ask(service.url, { method: 'GET', path: many, token });
    expect(text).not.toContain('"val"');
    await expect.poll(waiting, { timeout: 60_000 }).toBe(1);
    await service.kill();
    // Otherwise the server would continue the statement of a client that is gone.
    await db.query(`select pg_terminate_backend(pid) ${waiters}`);
    await expect.poll(waiting, { timeout: 60_000 }).toBe(0);
  });
  await client.end();
  expect(await left()).toBe(3);
  await service.start();
  await expect.poll(left, { timeout: 60_000 }).toBe(0);
});

test('a deleted account is gone with the answer, and its address can be used at once', async () => {
  const { db } = database;
  const credentials = { email: `${crypto.randomUUID()}@example.org`, password: 'correct horse 1' };
  const open = async () => {
    const path = '/v2/accounts';
    const { status, body } = await ask(service.url, { path, token: '', body: credentials });
    expect(status).toBe(200);
    return String(body['accountAuthToken']);
  };
  token = await open();
  const [device] = await register(1);
  if (!device) throw new Error('No device was registered.');
  const client = await connectDevice(device);
  await client.publish('up/measurements', { sId: '0x01', val: 1 });
  const rowsLeft = async () => {
    const { rows } = await db.query('select from measurement');
    return rows.length;
  };
  expect(await rowsLeft()).toBe(1);
  await db.transaction(async (tx) => {
    await tx.query('select from measurement for update');
    await call(service.url, 'DELETE', '/v2/accounts');
    expect((await ask(service.url, { method: 'GET', path: '/v2/devices', token })).status).toBe(
      401,
    );
    token = await open();
    const { devices } = await call(service.url, 'GET', '/v2/devices');
    expect(devices).toEqual([]);
  });
  await client.end();
  await expect.poll(rowsLeft, { timeout: 60_000 }).toBe(0);
});

test('a deletion in pieces continues in another process, while ingest continues beside it', async () => {
  const { db } = database;
  const [device, other] = await register(2);
  if (!device || !other) throw new Error('No device was registered.');
  const { rows } = await db.query<{ id: number }>('select id from device where uuid = $1', [
    device.deviceAuthUuid,
  ]);
  const id = rows[0]?.id;
  await db.query(
    `insert into alarm
       (account_id, device_id, device_uuid, p_id, pu_id, st_id, ev_id, tells, is_reported, is_global,
        since_at, last_firing_at, event, actions, s_ids, closed_at, closed_by)
     select account_id, id, uuid, '', 1, 1, 1, 'alarm', false, false, now(), now(), '{}', '{}', '{}',
            now(), 'cleared'
       from device cross join generate_series(1, 60000)
      where id = $1`,
    [id],
  );
  const count = async (table: string, column: string) => {
    const { rowCount } = await db.query(`select from ${table} where ${column} = $1`, [id]);
    return rowCount ?? 0;
  };
  const client = await connectDevice(other);
  // A removal that blocked ingest for longer than setting the mark would wait for this lock.
  await db.transaction(async (tx) => {
    await call(service.url, 'DELETE', `/v2/devices/${device.deviceAuthUuid}`);
    await tx.query('select pg_advisory_xact_lock_shared(7201)');
    await expect
      .poll(() => count('alarm', 'device_id'), { timeout: 60_000, interval: 5 })
      .toBeLessThan(60_000);
    await client.publish('up/measurements', { sId: '0x01', val: 1 });
    await service.kill();
  });
  await client.end();
  expect(await count('alarm', 'device_id')).toBeGreaterThan(0);
  expect(await count('removed_device', 'device_id')).toBe(1);
  expect(await count('device', 'id')).toBe(1);

  await service.start();
  await expect.poll(() => count('alarm', 'device_id'), { timeout: 120_000 }).toBe(0);
  await expect.poll(() => count('removed_device', 'device_id'), { timeout: 60_000 }).toBe(0);
  expect(await count('device', 'id')).toBe(0);
});
