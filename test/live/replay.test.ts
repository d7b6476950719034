import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { replayValues } from '../../src/live/replay.ts';
import type { LivePosition } from '../../src/live/value.ts';
import { storeMeasurements } from '../../src/measurements/store.ts';
import { readPosition } from '../../src/streams/position.ts';
import * as app from '../events/app.ts';
import { databaseKinds, testDatabase, type TestDatabase } from '../support/database.ts';

const hourMs = 3_600_000;

describe.each(databaseKinds)('what a reader has missed on %s', (kind) => {
  let database: TestDatabase;
  beforeAll(async () => {
    database = await testDatabase(kind);
  });
  afterAll(() => database?.drop());

  const store = (device: app.Device, ...values: [sId: string, ts: number, val: number][]) =>
    database.db.transaction((tx) =>
      storeMeasurements(
        tx,
        values.map(([sId, ts, val]) => ({ deviceId: device.deviceId, sId, ts, val })),
      ),
    );

  async function missed({ accountId }: app.Device, from: LivePosition, maxHz?: number) {
    const { db } = database;
    const reach = {
      key: '',
      accountId,
      ids: () => null,
      has: () => true,
      refresh: async () => undefined,
    };
    const present = await readPosition(db);
    const found: [string, number][] = [];
    for await (const values of replayValues({
      sql: db,
      filter: { reach, senses: undefined, maxHz },
      from,
      present,
    }))
      found.push(...values.map(({ sId, ts }): [string, number] => [sId, ts]));
    return found;
  }

  test('is read in pages, however many rows a sense has', async () => {
    const device = await app.newDevice(database.db);
    const now = Date.now();
    await store(device, ['a', now - hourMs, 1], ['b', now - hourMs, 1]);
    const position = await readPosition(database.db);
    const many = (sId: string) =>
      Array.from({ length: 2_500 }, (_, i): [string, number, number] => [sId, now - 10_000 + i, i]);
    await store(device, ...many('a'), ...many('b'), ['a', now - 2 * hourMs, 1]);
    const expected = [...many('a'), ...many('b')].map(([sId, ts]) => [sId, ts]);
    expect(await missed(device, { position, sent: [] })).toEqual(expected);
    const sent = [{ deviceId: device.deviceId, sId: 'a', ts: now - 10_000 + 2_400 }];
    const rest = expected.filter(([sId, ts]) => sId === 'b' || Number(ts) > now - 10_000 + 2_400);
    expect(await missed(device, { position, sent })).toEqual(rest);
    const thinned = await missed(device, { position, sent: [] }, 1);
    expect(thinned.length).toBeLessThanOrEqual(8);
    expect(thinned.at(-1)).toEqual(['b', now - 10_000 + 2_499]);
  });

  test('includes a transaction that began before and ended after', async () => {
    const device = await app.newDevice(database.db);
    const now = Date.now();
    await store(device, ['a', now - 2, 1], ['b', now - 2, 1]);
    const began = Promise.withResolvers<void>();
    const go = Promise.withResolvers<void>();
    const slow = database.db.transaction(async (tx) => {
      await storeMeasurements(tx, [{ deviceId: device.deviceId, sId: 'a', ts: now, val: 1 }]);
      began.resolve();
      await go.promise;
    });
    await began.promise;
    await store(device, ['b', now - 1, 1]);
    const position = await readPosition(database.db);
    go.resolve();
    await slow;
    expect(await missed(device, { position, sent: [] })).toEqual([['a', now]]);
  });

  test("is what is later than the id's time if the last day is compressed", async () => {
    const device = await app.newDevice(database.db);
    const now = Date.now();
    await store(device, ['a', now - 3 * hourMs, 1]);
    const position = await readPosition(database.db);
    await store(device, ['a', now - 2 * hourMs, 2], ['a', position.ts + 1, 3]);
    const expected = [
      ['a', now - 2 * hourMs],
      ['a', position.ts + 1],
    ];
    const from = { position, sent: [] };
    expect(await missed(device, from)).toEqual(expected);
    if (kind === 'postgresql') return;
    await database.db.query(`select compress_chunk(c) from show_chunks('measurement') c`);
    expect(await missed(device, from)).toEqual(expected.slice(1));
  });
});
