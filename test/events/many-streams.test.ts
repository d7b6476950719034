import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Database } from '../../src/db/database.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import * as app from './app.ts';
import { readEvents } from './sse.ts';
import { t0, timestamps } from './streams.ts';
import { insertAccount } from '../support/accounts.ts';

const { commitEvents, deviceEvent, newDevice, newEvent, senseEvent } = app;

let database: TestDatabase;
beforeAll(async () => {
  database = await testDatabase();
});
afterAll(() => database.drop());

describe('the streams of an account', () => {
  test('are at most 20 in a process: one more gets 403 with the reason, until one has ended', async () => {
    const history = await app.startHistory(database.db, { streams: 3 });
    const device = await newDevice(database.db);
    const url = `${history.url}/v2/events/stream`;
    const open = () => readEvents(url, device.accountId);
    const first = await open();
    await Promise.all([
      open(),
      readEvents(`${history.url}/v2/events/${device.uuid}/stream`, device.accountId),
    ]);
    for (const path of ['/v2/events/stream', `/v2/events/${device.uuid}/stream`]) {
      const refused = await history.get(path, device.accountId);
      expect(refused.status).toBe(403);
      expect(await refused.json()).toMatchObject({
        type: 'urn:sensorium:error:quota-exceeded',
        quota: 'streams',
        limit: 3,
        used: 3,
      });
    }
    (await readEvents(url, await insertAccount(database.db))).close();
    first.close();
    await expect
      .poll(async () => {
        const answer = await history.get('/v2/events/stream', device.accountId);
        await answer.body?.cancel();
        return answer.status;
      })
      .toBe(200);
    await history.close();
  });

  test('that could not be opened take no place', async () => {
    const history = await app.startHistory(database.db, { streams: 1 });
    const device = await newDevice(database.db);
    const stranger = await newDevice(database.db);
    for (let i = 0; i < 3; i += 1) {
      const path = `/v2/events/${stranger.uuid}/stream`;
      expect((await history.get(path, device.accountId)).status).toBe(404);
      const wrongId = { 'last-event-id': 'x' };
      const answer = await history.get('/v2/events/stream', device.accountId, wrongId);
      expect(answer.status).toBe(400);
    }
    const attempts = await Promise.all(
      Array.from({ length: 20 }, () => history.get('/v2/events/stream', device.accountId)),
    );
    const statuses = attempts.map(({ status }) => status).toSorted();
    expect(statuses).toEqual([200, ...Array(19).fill(403)]);
    for (const { body } of attempts) await body?.cancel();
    await history.close();
  });

  test('query the database once for all of them, and each gets what it covers', async () => {
    const { db, asked } = counting(database.db);
    const history = await app.startHistory(db, { streams: 100, heartbeatMs: 60_000 });
    const accountId = await insertAccount(db);
    const [one, other] = [await newDevice(db, accountId), await newDevice(db, accountId)];
    const paths = ['stream', `${one.uuid}/stream`, `${other.uuid}/stream`];
    const streams = await Promise.all(
      Array.from({ length: 60 }, (_, i) =>
        readEvents(`${history.url}/v2/events/${paths[i % 3]}`, accountId),
      ),
    );
    const before = asked();
    await commitEvents(db, history.bus, [
      newEvent(one, 'a', deviceEvent(t0)),
      newEvent(other, 'a', deviceEvent(t0 + 1)),
      newEvent(one, 'b', deviceEvent(t0 + 2)),
    ]);
    const expected = [[t0, t0 + 1, t0 + 2], [t0, t0 + 2], [t0 + 1]];
    for (const [i, stream] of streams.entries()) {
      const wanted = expected[i % 3] as number[];
      expect(timestamps(await stream.until(wanted.length))).toEqual(wanted);
    }
    // One or two rounds of two queries each, not sixty.
    expect(asked() - before).toBeLessThanOrEqual(6);

    // The position after a device's last event includes what followed it for others.
    const [, ofOne] = streams;
    const resumed = await readEvents(
      `${history.url}/v2/events/${paths[1]}`,
      accountId,
      ofOne?.lastId(),
    );
    await commitEvents(db, history.bus, [newEvent(one, 'c', deviceEvent(t0 + 3))]);
    expect(timestamps(await resumed.until(1))).toEqual([t0 + 3]);
    await history.close();
  });

  test('that fall behind resume there and miss nothing', async () => {
    const { db } = database;
    const history = await app.startHistory(db, { heartbeatMs: 60_000, patienceMs: 60_000 });
    const device = await newDevice(db);
    const slow = await history.get('/v2/events/stream', device.accountId);
    const quick = await readEvents(`${history.url}/v2/events/stream`, device.accountId);
    // More than may wait for it, together with all buffers on the way.
    const count = 30;
    for (let i = 0; i < count; i += 1) {
      const long = { ...senseEvent(t0 + i, '0x1'), filler: 'x'.repeat(700_000) };
      await commitEvents(db, history.bus, [newEvent(device, `${i}`, long)]);
      await quick.until(i + 1);
    }
    const seen = new Set<string>();
    const decoder = new TextDecoder();
    let text = '';
    for await (const chunk of slow.body ?? []) {
      text += decoder.decode(chunk, { stream: true });
      const blocks = text.split('\n\n');
      text = blocks.pop() ?? '';
      for (const block of blocks) {
        const ts = /"timestamp":(\d+)/.exec(block)?.[1];
        if (ts !== undefined) seen.add(ts);
      }
      if (seen.size === count) break;
    }
    expect([...seen].map(Number)).toEqual(Array.from({ length: count }, (_, i) => t0 + i));
    quick.close();
    await history.close();
  });
});

/** A database, and how many queries it got from streams. */
function counting(inner: Database): { db: Database; asked: () => number } {
  let asked = 0;
  const query = ((config: { name?: string }, values?: unknown[]) => {
    if (typeof config === 'object' && config.name?.startsWith('stream-')) asked += 1;
    return (inner.query as (config: unknown, values?: unknown[]) => unknown)(config, values);
  }) as Database['query'];
  return { db: { ...inner, query }, asked: () => asked };
}
