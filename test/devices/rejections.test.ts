import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { keepRejections as keepWithin } from '../../src/devices/rejections.ts';
import type { Sql } from '../../src/db/sql.ts';
import { type App, startApp } from './app.ts';

let app: App;
let token: string;
beforeAll(async () => {
  app = await startApp();
  token = await app.account();
});
afterAll(() => app.close());

type NewRejection = Parameters<typeof keepWithin>[1][number];
const maxBytes = 1_048_576;
const keepRejections = (db: Sql, rejections: NewRejection[]) =>
  keepWithin(db, rejections, { maxBytes });

const rejection = (deviceId: number, ts: number, rest: Partial<NewRejection> = {}) => ({
  deviceId,
  messageId: randomUUID(),
  item: 0,
  ts,
  topic: 'devices/x/up/measurements',
  reason: 'out-of-range' as const,
  message: '900 is above 85.',
  payload: '{"sId":"0x01","val":900}',
  ...rest,
});

type Listed = { timestamp: number; path?: string; payload: string; more?: number };
const stored = async (deviceId: number) => {
  const { rows } = await app.db.query<{ count: number; bytes: number; oldest: number }>(
    `select count(*), min(rejected_at) as oldest,
            sum(octet_length(topic) + octet_length(reason) + octet_length(message)
                + coalesce(octet_length(path), 0) + octet_length(payload)
                + coalesce(octet_length(details::text), 0)) as bytes
       from rejection where device_id = $1`,
    [deviceId],
  );
  const counted = await app.db.query(
    'select count, bytes from rejection_count where device_id = $1',
    [deviceId],
  );
  const { count = 0, bytes = 0, oldest = 0 } = rows[0] ?? {};
  expect(counted.rows).toEqual([{ count, bytes }]);
  return { count, bytes, oldest };
};
const listed = async (uuid: string, query = '') => {
  const answer = await app.call('GET', `/v2/devices/${uuid}/rejections${query}`, { token });
  expect(answer.status).toBe(200);
  return answer.body['rejections'] as Listed[];
};

test('GET rejections: newest first, each with timestamp, topic, reason, message, path and payload', async () => {
  const device = await app.device(token);
  const { deviceId } = device;
  await keepRejections(app.db, [
    rejection(deviceId, 1_700_000_000_000, {
      path: '/val',
      details: { sId: '0x01', val: 900, max: 85 },
    }),
    rejection(deviceId, 1_700_000_000_005),
  ]);
  expect(await listed(device.uuid)).toEqual([
    {
      timestamp: 1_700_000_000_005,
      topic: 'devices/x/up/measurements',
      reason: 'out-of-range',
      message: '900 is above 85.',
      payload: '{"sId":"0x01","val":900}',
    },
    expect.objectContaining({
      timestamp: 1_700_000_000_000,
      path: '/val',
      details: { sId: '0x01', val: 900, max: 85 },
    }),
  ]);
  expect(await listed(device.uuid, '?limit=1')).toHaveLength(1);
  for (const limit of ['0', '-1', 'x']) {
    const path = `/v2/devices/${device.uuid}/rejections?limit=${limit}`;
    expect((await app.call('GET', path, { token })).status).toBe(400);
  }
});

test('a repeated transaction stores each once; two problems of one item are two', async () => {
  const device = await app.device(token);
  const twice = [
    rejection(device.deviceId, 1, { path: '/a' }),
    rejection(device.deviceId, 1, { path: '/b' }),
  ].map((each) => ({ ...each, messageId: '00000000-0000-4000-8000-000000000001' }));
  await keepRejections(app.db, twice);
  await keepRejections(app.db, twice);
  const kept = await listed(device.uuid);
  expect(kept).toHaveLength(2);
  expect(new Set(kept.map(({ path }) => path))).toEqual(new Set(['/a', '/b']));
});

test('the newest 1,000 of a device are kept, even if one flood came in one millisecond', async () => {
  const device = await app.device(token);
  const other = await app.device(token);
  await keepRejections(app.db, [rejection(other.deviceId, 1)]);
  for (let batch = 0; batch < 6; batch += 1) {
    const rows = Array.from({ length: 500 }, (_, item) =>
      rejection(device.deviceId, batch < 3 ? 1 + batch : 100, { item }),
    );
    await keepRejections(app.db, rows);
  }
  expect(await stored(device.deviceId)).toMatchObject({ count: 1_000, oldest: 100 });
  expect(await listed(device.uuid)).toHaveLength(1_000);
  expect(await listed(other.uuid)).toHaveLength(1);
});

test('there are never more than a quarter over the limit, whoever stores them, and counting never reads them', async () => {
  const device = await app.device(token);
  for (let batch = 0; batch < 60; batch += 2) {
    const batches = [batch, batch + 1].map((ts) =>
      Array.from({ length: 45 }, (_, item) => rejection(device.deviceId, ts, { item })),
    );
    await Promise.all(batches.map((rows) => app.db.transaction((tx) => keepRejections(tx, rows))));
    expect((await stored(device.deviceId)).count).toBeLessThanOrEqual(1_250);
  }
  expect((await stored(device.deviceId)).count).toBeGreaterThanOrEqual(1_000);
});

test('of long ones 1 MiB is kept, the newest, and at most a quarter more', async () => {
  const device = await app.device(token);
  const payload = 'x'.repeat(10_000);
  for (let ts = 0; ts < 250; ts += 1)
    await keepRejections(app.db, [rejection(device.deviceId, ts, { payload })]);
  const { count, bytes, oldest } = await stored(device.deviceId);
  expect(bytes).toBeLessThanOrEqual(maxBytes * 1.25);
  expect(bytes).toBeGreaterThan(maxBytes - 11_000);
  expect(oldest).toBe(250 - count);
});

test('rejections from before there was a count are counted with the next one', async () => {
  const device = await app.device(token);
  const { deviceId } = device;
  await keepRejections(
    app.db,
    Array.from({ length: 100 }, (_, item) => rejection(deviceId, 1, { item })),
  );
  await app.db.query('delete from rejection_count where device_id = $1', [deviceId]);
  await keepRejections(app.db, [rejection(deviceId, 2)]);
  expect((await stored(deviceId)).count).toBe(101);
});

test('the payload of a message is stored with its first rejection and read with each', async () => {
  const device = await app.device(token);
  const ofMessage = { messageId: randomUUID(), payload: '' };
  await keepRejections(app.db, [
    rejection(device.deviceId, 1, { ...ofMessage, item: 3, path: '/3', payload: '[1,1]' }),
    rejection(device.deviceId, 1, { ...ofMessage, item: 1, path: '/1' }),
    rejection(device.deviceId, 1, { ...ofMessage, item: 0, more: 990 }),
    rejection(device.deviceId, 1, { payload: '' }),
  ]);
  const kept = await listed(device.uuid);
  const [own, others] = [0, 1].map((length) =>
    kept.filter(({ payload }) => Number(payload !== '') === length),
  );
  expect(own).toHaveLength(1);
  expect(others).toMatchObject([{ path: '/1' }, { path: '/3' }, { more: 990 }]);
  expect(others?.map(({ payload }) => payload)).toEqual(['[1,1]', '[1,1]', '[1,1]']);
});
