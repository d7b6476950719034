import { connect } from 'node:net';
import pg from 'pg';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openDatabase, type Database } from '../../src/db/database.ts';
import { recordEvents } from '../../src/events/record.ts';
import { startRedisBus } from '../../src/bus/redis.ts';
import { databaseKinds, testDatabase, type TestDatabase } from '../harness/database.ts';
import { hasRedis, startRedis } from '../harness/redis.ts';
import * as app from './app.ts';
import { readEvents } from './sse.ts';

const { newAccount, newDevice, newEvent, senseEvent, deviceEvent, commitEvents } = app;
const t0 = Date.UTC(2026, 5, 1);
const timestamps = (events: Record<string, unknown>[]) => events.map((e) => e['timestamp']);

describe.each(databaseKinds)('event streams on %s', (kind) => {
  let database: TestDatabase;
  let db: Database;
  let history: app.HistoryApp;
  /** Another process on the same database, which hears of nothing but at its heart-beat. */
  let deaf: app.HistoryApp;

  beforeAll(async () => {
    database = await testDatabase(kind);
    db = database.db;
    history = await app.startHistory(db, { heartbeatMs: 60_000 });
    deaf = await app.startHistory(db, { heartbeatMs: 200 });
  });
  afterAll(async () => {
    await history?.close();
    await deaf?.close();
    await database?.drop();
  });

  const open = (device: app.Device, lastEventId?: string, from = history) =>
    readEvents(`${from.url}/v2/events/${device.uuid}/stream`, device.accountId, lastEventId);
  const commit = (...events: Parameters<typeof newEvent>[]) =>
    commitEvents(
      db,
      history.bus,
      events.map((args) => newEvent(...args)),
    );

  test('give what is committed from now on, as the list has it', async () => {
    const device = await newDevice(db);
    await commit([device, 'before', senseEvent(t0, '0x1')]);
    const stream = await open(device);
    await commit([device, 'a', senseEvent(t0 + 1, '0x1')]);
    await commit([device, 'b', deviceEvent(t0 - 1)]);
    const events = await stream.until(2);
    stream.close();
    const { events: listed } = await history.json(`/v2/events/${device.uuid}`, device.accountId);
    const [first, , last] = listed as unknown[];
    expect(events).toEqual([first, last]);
  });

  test('of an account give the events of all its devices and of nobody else', async () => {
    const accountId = await newAccount(db);
    const devices = [await newDevice(db, accountId), await newDevice(db, accountId)] as const;
    const stranger = await newDevice(db);
    const stream = await readEvents(`${history.url}/v2/events/stream`, accountId);
    await commit(
      [stranger, 'a', deviceEvent(t0)],
      [devices[0], 'a', deviceEvent(t0 + 1)],
      [devices[1], 'a', deviceEvent(t0 + 2)],
    );
    const events = await stream.until(2);
    stream.close();
    expect(events.map((e) => e['deviceAuthUuid'])).toEqual(devices.map(({ uuid }) => uuid));
  });

  test('resume behind the last event without a repetition once all is read', async () => {
    const device = await newDevice(db);
    const stream = await open(device);
    await commit([device, 'a', deviceEvent(t0)]);
    await stream.until(1);
    stream.close();
    await commit([device, 'b', deviceEvent(t0 + 1)]);
    const resumed = await open(device, stream.lastId());
    expect(timestamps(await resumed.until(1))).toEqual([t0 + 1]);
    resumed.close();
  });

  test('resume from the middle of many pages and skip nothing', async () => {
    const device = await newDevice(db);
    const start = await open(device);
    start.close();
    const id = start.lastId();
    const many = Array.from(
      { length: 450 },
      (_, i) => [device, `${i}`, deviceEvent(t0 + i)] as Parameters<typeof newEvent>,
    );
    await commit(...many);
    const stream = await open(device, id);
    await stream.until(250);
    stream.close();
    const seen = stream.messages.slice(0, 250).flatMap(({ data }) => (data ? [data] : []));
    const resumed = await open(device, stream.messages[250]?.id);
    const rest = await resumed.until(450 - seen.length);
    const all = new Set([...timestamps(seen), ...timestamps(await resumed.until(rest.length))]);
    // What was repeated comes first: wait for the newest.
    while (!all.has(t0 + 449)) {
      for (const ts of timestamps(await resumed.until(all.size + 1))) all.add(ts);
    }
    resumed.close();
    expect(all.size).toBe(450);
  });

  test('miss nothing of a transaction that began first and commits last', async () => {
    const device = await newDevice(db);
    const slow = new pg.Client({ connectionString: database.url });
    await slow.connect();
    await slow.query('begin');
    await recordEvents(slow, [newEvent(device, 'slow', deviceEvent(t0))]);

    const stream = await open(device);
    await commit([device, 'quick', deviceEvent(t0 + 1)]);
    // Not held back by the one that is still open.
    expect(timestamps(await stream.until(1))).toEqual([t0 + 1]);
    const between = stream.lastId();
    await slow.query('commit');
    await slow.end();
    await commit([device, 'next', deviceEvent(t0 + 2)]);
    expect(timestamps(await stream.until(3))).toEqual([t0 + 1, t0, t0 + 2]);
    stream.close();

    const resumed = await open(device, between);
    expect(timestamps(await resumed.until(2))).toEqual([t0, t0 + 2]);
    resumed.close();
  });

  test('skip nothing while two processes commit at once and the reader keeps leaving', async () => {
    const device = await newDevice(db);
    const other = openDatabase({
      connectionString: database.url,
      maxConnections: 4,
      connectTimeoutMs: 5_000,
      statementTimeoutMs: 20_000,
      onIdleError: () => undefined,
    });
    const each = 60;
    const first = await open(device);
    let id = first.lastId();
    first.close();
    const write = async (writer: Database, name: string, slowly: boolean) => {
      for (let i = 0; i < each; i += 1) {
        await writer.transaction(async (tx) => {
          await recordEvents(tx, [newEvent(device, `${name}${i}`, deviceEvent(t0))]);
          if (slowly) await tx.query('select pg_sleep(0.01)');
        });
        history.bus.publish('events', { accountIds: [], deviceIds: [device.deviceId] });
      }
    };
    const writing = Promise.all([write(db, 'quick', false), write(other, 'slow', true)]);
    const seen = new Set<unknown>();
    while (seen.size < each * 2) {
      const stream = await open(device, id);
      const before = stream.messages.length;
      await stream.until(1);
      stream.close();
      for (const message of stream.messages.slice(0, before + 3)) {
        if (message.data) seen.add(message.data['eventId']);
        id = message.id;
      }
    }
    await writing;
    await other.close();
    expect(seen.size).toBe(each * 2);
  });

  test('go on through the archive for who was away longer than the feed reaches back', async () => {
    const device = await newDevice(db);
    const stream = await open(device);
    stream.close();
    await commit([device, 'a', senseEvent(t0, '0x1')], [device, 'b', deviceEvent(t0 + 1)]);
    await db.query('delete from event_feed where device_id = $1', [device.deviceId]);
    const [ts = '', snapshot = ''] = stream.lastId().split(/\.(.*)/s);
    const resumed = await open(device, `${Number(ts) - 25 * 3_600_000}.${snapshot}`);
    expect(timestamps(await resumed.until(2)).sort()).toEqual([t0, t0 + 1]);
    await commit([device, 'c', deviceEvent(t0 + 2)]);
    expect(timestamps(await resumed.until(3)).at(-1)).toBe(t0 + 2);
    resumed.close();
  });

  test('send all of the feed again to who comes from another life of the database', async () => {
    const device = await newDevice(db);
    await commit([device, 'a', deviceEvent(t0)]);
    const stream = await open(device, `${Date.now()}.900000000:900000000:`);
    expect(timestamps(await stream.until(1))).toEqual([t0]);
    stream.close();
  });

  test('reach the reader of a process that hears of nothing, at its heart-beat', async () => {
    const device = await newDevice(db);
    const stream = await open(device, undefined, deaf);
    await commit([device, 'a', deviceEvent(t0)]);
    await stream.until(1);
    const beats = () => stream.messages.filter(({ data }) => data === null).length;
    const before = beats();
    await expect.poll(beats).toBeGreaterThan(before);
    stream.close();
  });

  test('end with the token, when told and when not', async () => {
    const device = await newDevice(db);
    const told = await open(device);
    const sameAccount = await open(device);
    history.bus.publish('revoked', { accountId: device.accountId, sessionId: 'another' });
    history.bus.publish('revoked', { accountId: device.accountId + 1_000_000 });
    await commit([device, 'a', deviceEvent(t0)]);
    await Promise.all([told.until(1), sameAccount.until(1)]);
    history.bus.publish('revoked', { accountId: device.accountId, sessionId: 'session' });
    await Promise.all([told.ended, sameAccount.ended]);

    const untold = await open(device, undefined, deaf);
    deaf.ended.add(String(device.accountId));
    await untold.ended;
  });

  test('end when the device is removed', async () => {
    const device = await newDevice(db);
    const stream = await open(device, undefined, deaf);
    await db.query('delete from device where id = $1', [device.deviceId]);
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
    const device = await newDevice(db);
    const path = `/v2/events/${device.uuid}/stream`;
    const response = await history.get(path, device.accountId, { 'last-event-id': id });
    expect(response.status).toBe(400);
    await response.body?.cancel();
  });

  test("of somebody else's device are unknown", async () => {
    const device = await newDevice(db);
    const stranger = await newAccount(db);
    expect((await history.get(`/v2/events/${device.uuid}/stream`, stranger)).status).toBe(404);
  });

  test('of a reader that does not read are cut off', async () => {
    const device = await newDevice(db);
    const impatient = await app.startHistory(db, { heartbeatMs: 50, patienceMs: 200 });
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(impatient.url).port) });
    const gone = new Promise((resolve) => socket.once('close', resolve));
    socket.on('error', () => undefined);
    socket.write(
      `GET /v2/events/${device.uuid}/stream HTTP/1.1\r\nHost: x\r\n` +
        `Authorization: Bearer ${device.accountId}\r\n\r\n`,
    );
    socket.pause();
    // More than all the buffers on the way hold together.
    const long = { ...senseEvent(t0, '0x1'), why: [] as never[], filler: 'x'.repeat(2_000_000) };
    for (let i = 0; i < 12; i += 1) {
      await commitEvents(db, impatient.bus, [newEvent(device, `${i}`, { ...long, ts: t0 + i })]);
    }
    const { rows } = await db.query<{ n: number }>(
      'select count(*) as n from event where device_id = $1',
      [device.deviceId],
    );
    expect(rows[0]?.n).toBe(12);
    await expect.poll(() => impatient.openStreams(), { timeout: 10_000 }).toBe(0);
    socket.resume();
    await gone;
    await impatient.close();
  });
});

describe.skipIf(!hasRedis)('event streams over Redis', () => {
  test('reach readers of another process at once', async () => {
    const redis = await startRedis();
    const database = await testDatabase();
    const onError = () => undefined;
    const newBus = () =>
      startRedisBus({ url: redis.url, onError, onListenerError: (error) => Promise.reject(error) });
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
    await redis.kill();
  });
});
