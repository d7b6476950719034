import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../src/db/database.ts';
import { recordEvents } from '../../src/events/store.ts';
import { databaseKinds, openTestDatabase } from '../support/database.ts';
import { openClient } from '../support/template.ts';
import { deviceEvent, newDevice, newEvent, senseEvent } from './app.ts';
import { readEvents } from './sse.ts';
import { startStreams, t0, timestamps, type Streams } from './streams.ts';
import { insertAccount } from '../support/accounts.ts';

describe.each(databaseKinds)('event streams on %s', (kind) => {
  let on: Streams;

  beforeAll(async () => {
    on = await startStreams(kind);
  });
  afterAll(() => on?.close());

  test('give what is committed from now on, in the form of the list', async () => {
    const device = await newDevice(on.db);
    await on.commit([device, 'before', senseEvent(t0, '0x1')]);
    const stream = await on.open(device);
    await on.commit([device, 'a', senseEvent(t0 + 1, '0x1')]);
    await on.commit([device, 'b', deviceEvent(t0 - 1)]);
    const events = await stream.until(2);
    stream.close();
    const { events: listed } = await on.history.json(`/v2/events/${device.uuid}`, device.accountId);
    const [first, , last] = listed as unknown[];
    expect(events).toEqual([first, last]);
  });

  test('of an account give the events of all its devices and of nobody else', async () => {
    const accountId = await insertAccount(on.db);
    const devices = [await newDevice(on.db, accountId), await newDevice(on.db, accountId)] as const;
    const stranger = await newDevice(on.db);
    const stream = await readEvents(`${on.history.url}/v2/events/stream`, accountId);
    await on.commit(
      [stranger, 'a', deviceEvent(t0)],
      [devices[0], 'a', deviceEvent(t0 + 1)],
      [devices[1], 'a', deviceEvent(t0 + 2)],
    );
    const events = await stream.until(2);
    stream.close();
    expect(events.map((e) => e['deviceAuthUuid'])).toEqual(devices.map(({ uuid }) => uuid));
  });

  test('resume after the last event, without a repetition once everything was read', async () => {
    const device = await newDevice(on.db);
    const stream = await on.open(device);
    await on.commit([device, 'a', deviceEvent(t0)]);
    await stream.until(1);
    stream.close();
    await on.commit([device, 'b', deviceEvent(t0 + 1)]);
    const resumed = await on.open(device, stream.lastId());
    expect(timestamps(await resumed.until(1))).toEqual([t0 + 1]);
    resumed.close();
  });

  test('resume from a position on another server, whatever its transaction numbers', async () => {
    const device = await newDevice(on.db);
    await on.commit([device, 'a', deviceEvent(t0)]);
    const stream = await on.open(device);
    await on.commit([device, 'b', deviceEvent(t0 + 1)]);
    await stream.until(1);
    stream.close();
    const [ts = '', snapshot = '', server = ''] = stream.lastId().split('.');
    expect(server).toMatch(/^[0-9a-f]+$/);
    // On this server it would see everything; the same holds for a time before the feed begins.
    const dayBefore = String(Number(ts) - 86_400_000);
    for (const id of [
      `${ts}.${snapshot}.abc`,
      `${dayBefore}.${snapshot}.abc`,
      `${ts}.${snapshot}`,
    ]) {
      const resumed = await on.open(device, id);
      expect(timestamps(await resumed.until(2)).toSorted()).toEqual([t0, t0 + 1]);
      resumed.close();
    }
  });

  test('resume from the middle of many pages and skip nothing', async () => {
    const device = await newDevice(on.db);
    const start = await on.open(device);
    start.close();
    const id = start.lastId();
    const many = Array.from(
      { length: 450 },
      (_, i) => [device, `${i}`, deviceEvent(t0 + i)] as Parameters<typeof newEvent>,
    );
    await on.commit(...many);
    const stream = await on.open(device, id);
    await stream.until(250);
    stream.close();
    const seen = stream.messages.slice(0, 250).flatMap(({ data }) => (data ? [data] : []));
    const resumed = await on.open(device, stream.messages[250]?.id);
    const rest = await resumed.until(450 - seen.length);
    const all = new Set([...timestamps(seen), ...timestamps(await resumed.until(rest.length))]);
    // Repetitions come first, so wait for the newest.
    while (!all.has(t0 + 449)) {
      for (const ts of timestamps(await resumed.until(all.size + 1))) all.add(ts);
    }
    resumed.close();
    expect(all.size).toBe(450);
  });

  test('miss nothing of a transaction that began first and commits last', async () => {
    const device = await newDevice(on.db);
    const slow = openClient(on.database.url);
    await slow.connect();
    await slow.query('begin');
    await recordEvents(slow, [newEvent(device, 'slow', deviceEvent(t0))]);

    const stream = await on.open(device);
    await on.commit([device, 'quick', deviceEvent(t0 + 1)]);
    // Not delayed by the one that is still open.
    expect(timestamps(await stream.until(1))).toEqual([t0 + 1]);
    const between = stream.lastId();
    await slow.query('commit');
    await slow.end();
    await on.commit([device, 'next', deviceEvent(t0 + 2)]);
    expect(timestamps(await stream.until(3))).toEqual([t0 + 1, t0, t0 + 2]);
    stream.close();

    const resumed = await on.open(device, between);
    expect(timestamps(await resumed.until(2))).toEqual([t0, t0 + 2]);
    resumed.close();
  });

  test('skip nothing while two processes commit at once and the reader keeps disconnecting', async () => {
    const device = await newDevice(on.db);
    const other = openTestDatabase(on.database.url);
    const each = 60;
    const first = await on.open(device);
    let id = first.lastId();
    first.close();
    const write = async (writer: Database, name: string, slowly: boolean) => {
      for (let i = 0; i < each; i += 1) {
        await writer.transaction(async (tx) => {
          await recordEvents(tx, [newEvent(device, `${name}${i}`, deviceEvent(t0))]);
          if (slowly) await tx.query('select pg_sleep(0.01)');
        });
        on.history.bus.publish('events', {
          accountIds: [device.accountId],
          deviceIds: [device.deviceId],
        });
      }
    };
    const writing = Promise.all([write(on.db, 'quick', false), write(other, 'slow', true)]);
    const seen = new Set<unknown>();
    while (seen.size < each * 2) {
      const stream = await on.open(device, id);
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

  test('continue from the archive for a reader that was away for longer than the feed is kept', async () => {
    const device = await newDevice(on.db);
    const stream = await on.open(device);
    stream.close();
    await on.commit([device, 'a', senseEvent(t0, '0x1')], [device, 'b', deviceEvent(t0 + 1)]);
    await on.db.query('delete from event_feed where device_id = $1', [device.deviceId]);
    const [ts = '', snapshot = ''] = stream.lastId().split(/\.(.*)/s);
    const resumed = await on.open(device, `${Number(ts) - 25 * 3_600_000}.${snapshot}`);
    expect(timestamps(await resumed.until(2)).sort()).toEqual([t0, t0 + 1]);
    await on.commit([device, 'c', deviceEvent(t0 + 2)]);
    expect(timestamps(await resumed.until(3)).at(-1)).toBe(t0 + 2);
    resumed.close();
  });

  test('send the whole feed again to a reader from an earlier life of the database', async () => {
    const device = await newDevice(on.db);
    await on.commit([device, 'a', deviceEvent(t0)]);
    const stream = await on.open(device, `${Date.now()}.900000000:900000000:`);
    expect(timestamps(await stream.until(1))).toEqual([t0]);
    stream.close();
  });
});
