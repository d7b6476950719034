import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { startRedisBus } from '../../src/bus/redis.ts';
import { databaseKinds, testDatabase } from '../support/database.ts';
import { canOpenRedis, openRedis } from '../support/redis.ts';
import * as app from './app.ts';
import { readEvents } from './sse.ts';
import { startStreams, t0, timestamps, type Streams } from './streams.ts';
import { monotonicClock } from '../../src/lib/clock.ts';
import { insertAccount } from '../support/accounts.ts';

const { newDevice, newEvent, senseEvent, deviceEvent, commitEvents } = app;

describe.each(databaseKinds)('readers of event streams on %s', (kind) => {
  let on: Streams;

  beforeAll(async () => {
    on = await startStreams(kind);
  });
  afterAll(() => on?.close());

  test('reach a reader in a process that hears no announcements at its heartbeat', async () => {
    const device = await newDevice(on.db);
    const stream = await on.open(device, undefined, on.deaf);
    await on.commit([device, 'a', deviceEvent(t0)]);
    await stream.until(1);
    const beats = () => stream.messages.filter(({ data }) => data === null).length;
    const before = beats();
    await expect.poll(beats).toBeGreaterThan(before);
    stream.close();
  });

  test('end with the token, with or without an announcement', async () => {
    const device = await newDevice(on.db);
    const told = await on.open(device);
    const sameAccount = await on.open(device);
    on.history.bus.publish('revoked', { accountId: device.accountId, sessionId: 'another' });
    on.history.bus.publish('revoked', { accountId: device.accountId + 1_000_000 });
    await on.commit([device, 'a', deviceEvent(t0)]);
    await Promise.all([told.until(1), sameAccount.until(1)]);
    on.history.bus.publish('revoked', { accountId: device.accountId, sessionId: 'session' });
    await Promise.all([told.ended, sameAccount.ended]);

    const untold = await on.open(device, undefined, on.deaf);
    on.deaf.ended.add(String(device.accountId));
    await untold.ended;
  });

  test('end when the device is removed', async () => {
    const device = await newDevice(on.db);
    const stream = await on.open(device, undefined, on.deaf);
    await on.db.query('delete from device where id = $1', [device.deviceId]);
    await stream.ended;
  });

  test.each([
    'x',
    '1',
    '1.5:4:',
    '1.5:9:3',
    '1.5:9:7,6',
    '1.5:9:9',
    '1.99999999999999999999:9:',
    '1.0:0:',
  ])('refuse to resume from %s', async (id) => {
    const device = await newDevice(on.db);
    const path = `/v2/events/${device.uuid}/stream`;
    const response = await on.history.get(path, device.accountId, { 'last-event-id': id });
    expect(response.status).toBe(400);
    await response.body?.cancel();
  });

  test("of another account's device are unknown", async () => {
    const device = await newDevice(on.db);
    const stranger = await insertAccount(on.db);
    expect((await on.history.get(`/v2/events/${device.uuid}/stream`, stranger)).status).toBe(404);
  });

  test('that nobody reads are cut off', async () => {
    const device = await newDevice(on.db);
    const impatient = await app.startHistory(on.db, { heartbeatMs: 50, patienceMs: 200 });
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(impatient.url).port) });
    const gone = new Promise((resolve) => socket.once('close', resolve));
    socket.on('error', () => undefined);
    socket.write(
      `GET /v2/events/${device.uuid}/stream HTTP/1.1\r\nHost: x\r\n` +
        `Authorization: Bearer ${device.accountId}\r\n\r\n`,
    );
    socket.pause();
    await expect.poll(() => impatient.openStreams()).toBe(1);
    // More than all buffers on the way hold together.
    const long = { ...senseEvent(t0, '0x1'), why: [] as never[], filler: 'x'.repeat(2_000_000) };
    for (let i = 0; i < 12; i += 1) {
      await commitEvents(on.db, impatient.bus, [newEvent(device, `${i}`, { ...long, ts: t0 + i })]);
    }
    const { rows } = await on.db.query<{ n: number }>(
      'select count(*) as n from event where device_id = $1',
      [device.deviceId],
    );
    expect(rows[0]?.n).toBe(12);
    await expect.poll(() => impatient.openStreams(), { timeout: 60_000 }).toBe(0);
    socket.resume();
    await gone;
    await impatient.close();
  });
});

describe.skipIf(!canOpenRedis)('event streams over Redis', () => {
  test('reach readers of another process at once', async () => {
    const redis = await openRedis();
    const database = await testDatabase();
    const onError = () => undefined;
    const options = { url: redis.url, monotonicClock, onError, onListenerError: onError };
    const newBus = () => startRedisBus(options);
    const [here, there] = [await newBus(), await newBus()];
    const history = await app.startHistory(database.db, { bus: there, heartbeatMs: 60_000 });
    const device = await newDevice(database.db);
    const url = `${history.url}/v2/events/${device.uuid}/stream`;
    const stream = await readEvents(url, device.accountId);
    await commitEvents(database.db, here, [newEvent(device, 'a', deviceEvent(t0))]);
    expect(timestamps(await stream.until(1))).toEqual([t0]);
    stream.close();
    await history.close();
    await Promise.all([here.close(), there.close()]);
    await database.drop();
    await redis.close();
  });
});
