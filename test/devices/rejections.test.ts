import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { keepRejections } from '../../src/devices/rejections.ts';
import type { NewRejection } from '../../src/devices/rejections.ts';
import { type App, startApp } from './app.ts';

let app: App;
let token: string;
beforeAll(async () => {
  app = await startApp();
  token = await app.account();
});
afterAll(() => app.close());

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

type Listed = { timestamp: number; path?: string };
const listed = async (uuid: string, query = '') => {
  const answer = await app.call('GET', `/v2/devices/${uuid}/rejections${query}`, { token });
  expect(answer.status).toBe(200);
  return answer.body['rejections'] as Listed[];
};

test('GET rejections: newest first, each with timestamp, topic, reason, message, path and payload', async () => {
  const device = await app.device(token);
  const { deviceId } = device;
  await keepRejections(app.db, [
    rejection(deviceId, 1_700_000_000_000, { path: '/val' }),
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
    expect.objectContaining({ timestamp: 1_700_000_000_000, path: '/val' }),
  ]);
  expect(await listed(device.uuid, '?limit=1')).toHaveLength(1);
  for (const limit of ['0', '-1', 'x']) {
    const path = `/v2/devices/${device.uuid}/rejections?limit=${limit}`;
    expect((await app.call('GET', path, { token })).status).toBe(400);
  }
});

test('a transaction that is tried again keeps each once; two problems of one item are two', async () => {
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

test('the newest 1,000 of a device are kept, also of one flood in one millisecond', async () => {
  const device = await app.device(token);
  const other = await app.device(token);
  await keepRejections(app.db, [rejection(other.deviceId, 1)]);
  for (let batch = 0; batch < 6; batch += 1) {
    const rows = Array.from({ length: 500 }, (_, item) =>
      rejection(device.deviceId, batch < 3 ? 1 + batch : 100, { item }),
    );
    await keepRejections(app.db, rows);
  }
  const { rows } = await app.db.query<{ count: number; oldest: number }>(
    `select count(*), min(rejected_at) as oldest from rejection where device_id = $1`,
    [device.deviceId],
  );
  expect(rows).toEqual([{ count: 1_000, oldest: 100 }]);
  expect(await listed(device.uuid)).toHaveLength(1_000);
  expect(await listed(other.uuid)).toHaveLength(1);
});
