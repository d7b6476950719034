import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { testDatabase, databaseKinds } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';
import { forever, ingestProcess, insertDevice, now } from './harness.ts';
import { rejections, storedValues, uplink } from './harness.ts';
import type { IngestProcess } from './harness.ts';

describe.each(databaseKinds)('bad items of one message, on %s', (kind) => {
  let database: TestDatabase;
  let process: IngestProcess;
  beforeAll(async () => {
    database = await testDatabase(kind);
    process = ingestProcess(database.url);
    await database.db.query(
      `create function refuse() returns trigger language plpgsql as
       $$ begin raise exception 'poison' using errcode = '22000'; end $$`,
    );
  });
  afterAll(async () => {
    await process.close();
    await database.drop();
  });

  it('leave ten rejections, and the number of further ones', async () => {
    const own = await insertDevice(database.db);
    const items = Array.from({ length: 1_000 }, (_, index) => ({
      index,
      value: { sId: index === 500 ? '0x01' : 'x'.repeat(5_000), val: 1, ts: now + index },
    }));
    const message = uplink({ kind: 'measurements', items });
    message.rejections.push(
      { reason: 'invalid-payload', message: 'no measurement', path: '/1001' },
      { reason: 'more-of-message', message: 'And 7 more in this message.', more: 7 },
    );
    const told = process.down.length;
    await process.ingest.ingest(own, message, forever);
    expect(await storedValues(database.db, own)).toEqual([1]);
    const kept = await rejections(database.db, own);
    expect(kept).toHaveLength(11);
    expect(kept.filter(({ reason }) => reason === 'unknown-sense')).toHaveLength(9);
    expect(kept.filter(({ payload }) => payload !== '')).toHaveLength(1);
    expect(kept.at(-1)).toMatchObject({ reason: 'more-of-message', more: 997 });
    const errors = process.down.slice(told).map(({ payload }) => JSON.stringify(payload));
    expect(errors).toHaveLength(11);
    expect(Math.max(...errors.map((error) => error.length))).toBeLessThan(2_500);
    expect(errors.at(-1)).toContain('And 997 more in this message.');
  });

  it('leave ten if the message is split, plus all that the database refused', async () => {
    const own = await insertDevice(database.db);
    await database.db.query(
      `create trigger poison before insert on measurement
       for each row when (new.val between 660 and 690) execute function refuse()`,
    );
    const items = Array.from({ length: 1_000 }, (_, n) => ({
      index: n,
      value: { sId: n >= 600 && n < 700 ? '0x01' : '0x99', val: n, ts: now + n },
    }));
    await process.ingest.ingest(own, uplink({ kind: 'measurements', items }), forever);
    await database.db.query('drop trigger poison on measurement');
    expect(await storedValues(database.db, own)).toHaveLength(69);
    const kept = await rejections(database.db, own);
    const of = (reason: string) => kept.filter((one) => one.reason === reason);
    expect(of('unknown-sense')).toHaveLength(10);
    expect(of('unstorable')).toHaveLength(31);
    expect(of('unstorable').every(({ payload }) => payload === 'as it came')).toBe(true);
    const more = of('more-of-message').reduce((sum, { more }) => sum + (more ?? 0), 0);
    expect(more).toBe(890);
    expect(of('more-of-message').length).toBeLessThan(20);
  });
});

describe.each(databaseKinds)('bad items of many messages in one minute, on %s', (kind) => {
  let database: TestDatabase;
  let process: IngestProcess;
  beforeAll(async () => {
    database = await testDatabase(kind);
    process = ingestProcess(database.url);
  });
  afterAll(async () => {
    await process.close();
    await database.drop();
  });

  const bad = (arrivedTs: number) => {
    const message = uplink({ kind: 'none' }, arrivedTs);
    message.rejections.push({ reason: 'invalid-payload', message: 'expected object', path: '' });
    return message;
  };
  const sendBad = (own: Awaited<ReturnType<typeof insertDevice>>, count: number, ts: number) =>
    Promise.all(Array.from({ length: count }, () => process.ingest.ingest(own, bad(ts), forever)));

  it('leave sixty rejections, and one row that adds up the others, transaction by transaction', async () => {
    const own = await insertDevice(database.db);
    const other = await insertDevice(database.db);
    const told = process.down.length;
    await sendBad(own, 59, now);
    for (const count of [3, 500, 1]) await sendBad(own, count, now + 1_000);
    await sendBad(other, 1, now);
    const kept = await rejections(database.db, own);
    expect(kept).toHaveLength(61);
    expect(kept.filter(({ reason }) => reason === 'invalid-payload')).toHaveLength(60);
    expect(kept.filter(({ reason }) => reason === 'more-of-minute')).toMatchObject([
      { more: 503, payload: '' },
    ]);
    expect(await rejections(database.db, other)).toHaveLength(1);
    const { rows } = await database.db.query(
      'select count from rejection_count where device_id = $1',
      [own.deviceId],
    );
    expect(rows).toEqual([{ count: 61 }]);
    // Its own sixty each, one notice that there are more, and the one of the other device.
    expect(process.down.length - told).toBe(62);
  });

  it('start anew with the next minute, which is counted separately', async () => {
    const own = await insertDevice(database.db);
    await sendBad(own, 70, now);
    await sendBad(own, 65, now + 60_000);
    const counts = (await rejections(database.db, own)).flatMap(({ more }) => more ?? []);
    expect(counts.toSorted((a, b) => a - b)).toEqual([5, 10]);
  });

  it('do not keep good items of the same messages from being stored', async () => {
    const own = await insertDevice(database.db);
    await sendBad(own, 100, now);
    const items = [
      { index: 0, value: { sId: '0x99', val: 1 } },
      { index: 1, value: { sId: '0x01', val: 7 } },
    ];
    await process.ingest.ingest(own, uplink({ kind: 'measurements', items }), forever);
    expect(await storedValues(database.db, own)).toEqual([7]);
    const kept = await rejections(database.db, own);
    expect(kept.flatMap(({ more }) => more ?? [])).toEqual([41]);
  });
});
