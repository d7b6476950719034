import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import { testDatabase, databaseKinds } from '../support/database.ts';
import type { TestDatabase } from '../support/database.ts';
import {
  countingPurpose,
  forever,
  ingestProcess,
  insertDevice,
  installProfile,
  measured,
  now,
  recordedEvents,
  rejections,
  storedValues,
  uplink,
  waitForBlocked,
} from './harness.ts';
import type { IngestProcess } from './harness.ts';

describe.each(databaseKinds)('ingest on %s', (kind) => {
  let database: TestDatabase;
  let process: IngestProcess;
  let device: DeviceIdentity;

  beforeAll(async () => {
    database = await testDatabase(kind);
    process = ingestProcess(database.url);
    device = await insertDevice(database.db);
  });
  afterAll(async () => {
    await process.close();
    await database.drop();
  });

  it('has stored a message when its promise resolves', async () => {
    await process.ingest.ingest(device, measured('0x01', [now, 1], [now + 1, 2]), forever);
    expect(await storedValues(database.db, device)).toEqual([1, 2]);
  });

  it('stores a redelivered measurement once, and two values of one millisecond both', async () => {
    const own = await insertDevice(database.db);
    const message = measured('0x01', [now, 1], [now, 2]);
    await process.ingest.ingest(own, message, forever);
    await process.ingest.ingest(own, message, forever);
    expect(await storedValues(database.db, own)).toEqual([1, 2]);
  });

  it('tells measurements without a time apart, even within one millisecond', async () => {
    const own = await insertDevice(database.db);
    const items = [5, 5, 5].map((val, index) => ({ index, value: { sId: '0x01', val } }));
    await process.ingest.ingest(own, uplink({ kind: 'measurements', items }), forever);
    await process.ingest.ingest(own, uplink({ kind: 'measurements', items }), forever);
    expect(await storedValues(database.db, own)).toEqual([5, 5, 5, 5, 5, 5]);
  });

  it('keeps a position with its latitude and longitude', async () => {
    const own = await insertDevice(database.db);
    const value = { sId: '0x02', val: { lat: 52.5, long: 13.4 }, ts: now };
    const message = uplink({ kind: 'measurements', items: [{ index: null, value }] });
    await process.ingest.ingest(own, message, forever);
    const { rows } = await database.db.query(
      'select m.val, m.long from measurement m join series s on s.id = m.series_id where s.device_id = $1',
      [own.deviceId],
    );
    expect(rows).toEqual([{ val: 52.5, long: 13.4 }]);
  });

  it('records bad items as rejections, tells the device, and stores the good items', async () => {
    const own = await insertDevice(database.db);
    const sent = [
      { sId: '0x01', val: 1, ts: now },
      { sId: '0x99', val: 1, ts: now },
      { sId: '0x01', val: -51, ts: now },
      { sId: '0x01', val: 2, ts: now + 300_001 },
      { sId: '0x01', val: 3, ts: now - 90 * 86_400_000 - 1 },
      { sId: '0x01', val: 4, ts: now + 300_000 },
    ];
    const items = sent.map((value, index) => ({ index, value }));
    const told = process.down.length;
    await process.ingest.ingest(own, uplink({ kind: 'measurements', items }), forever);
    expect(await storedValues(database.db, own)).toEqual([1, 4]);
    const wrong = [
      ['unknown-sense', '/1/sId'],
      ['out-of-range', '/2/val'],
      ['future-timestamp', '/3/ts'],
      ['expired-timestamp', '/4/ts'],
    ].map(([reason, path]) => ({
      reason,
      path,
      // Once a message: with the oldest.
      payload: path === '/4/ts' ? 'as it came' : '',
      more: null,
    }));
    expect(await rejections(database.db, own)).toEqual(wrong);
    const errors = process.down.slice(told).filter(({ topic }) => topic === 'errors');
    const [unknown, outside, future, expired] = wrong.map(({ reason, path }) => ({ reason, path }));
    const ahead = { reason: 'clock-ahead', path: '/5/ts' };
    expect(errors.map(({ payload }) => payload)).toMatchObject(
      [expired, unknown, outside, ahead, future].map((one) => ({ ...one, topic: 'up/test' })),
    );
  });

  it('sets one bad item of a thousand apart and stores the other 999', async () => {
    await database.db.query(
      `create function refuse() returns trigger language plpgsql as
       $$ begin raise exception 'poison' using errcode = '22000'; end $$`,
    );
    await database.db.query(
      `create trigger poison before insert on measurement
       for each row when (new.val = 666) execute function refuse()`,
    );
    const own = await insertDevice(database.db);
    const points = Array.from({ length: 1_000 }, (_, n) => [now + n, n] as [number, number]);
    await Promise.all([
      process.ingest.ingest(own, measured('0x01', ...points), forever),
      process.ingest.ingest(device, measured('0x01', [now + 2, 3]), forever),
    ]);
    await database.db.query('drop trigger poison on measurement');
    expect(await storedValues(database.db, own)).toEqual(
      points.map(([, val]) => val).filter((val) => val !== 666),
    );
    expect(await rejections(database.db, own)).toMatchObject([
      { reason: 'unstorable', path: '/666' },
    ]);
    expect(await storedValues(database.db, device)).toEqual([1, 2, 3]);
  });

  it('rejects measurements that a millisecond has no room for, and stores the others', async () => {
    const own = await insertDevice(database.db);
    const vals = Array.from({ length: 999 }, (_, val) => val);
    await process.ingest.ingest(
      own,
      measured('0x01', ...vals.map((val): [number, number] => [now, val])),
      forever,
    );
    const last = measured('0x01', [now, 7], [now, 999], [now, 1_000], [now + 1, 1_000]);
    await Promise.all([
      process.ingest.ingest(own, last, forever),
      process.ingest.ingest(device, measured('0x01', [now + 9, 4]), forever),
    ]);
    expect(await storedValues(database.db, own)).toEqual([...vals, 999, 1_000]);
    expect(await rejections(database.db, own)).toMatchObject([
      { reason: 'unstorable', path: '/2' },
    ]);
    expect(await storedValues(database.db, device)).toEqual([1, 2, 3, 4]);
  });

  it('rejects a message of a removed device with device-gone', async () => {
    const own = await insertDevice(database.db);
    await process.ingest.ingest(own, measured('0x01', [now, 1]), forever);
    await database.db.query('delete from device where id = $1', [own.deviceId]);
    const late = process.ingest.ingest(own, measured('0x01', [now + 1, 2]), forever);
    await expect(late).rejects.toMatchObject({ code: 'device-gone' });
    expect(await storedValues(database.db, own)).toEqual([1]);
  });

  it('rejects a message of a device whose account was removed, by the account alone', async () => {
    const [own, other] = [await insertDevice(database.db), await insertDevice(database.db)];
    for (const device of [own, other])
      await process.ingest.ingest(device, measured('0x01', [now, 1]), forever);
    // Nothing of the device changes, and no notice is sent, so what is remembered of it stays.
    await database.db.query('update account set removed_at = now() where id = $1', [own.accountId]);
    const late = process.ingest.ingest(own, measured('0x01', [now + 1, 2]), forever);
    const beside = process.ingest.ingest(other, measured('0x01', [now + 1, 2]), forever);
    await expect(late).rejects.toMatchObject({ code: 'device-gone' });
    await beside;
    // A process that does not remember it.
    const restarted = ingestProcess(database.url);
    const later = restarted.ingest.ingest(own, measured('0x01', [now + 2, 3]), forever);
    await expect(later).rejects.toMatchObject({ code: 'device-gone' });
    await restarted.close();
    expect(await storedValues(database.db, own)).toEqual([1]);
    expect(await storedValues(database.db, other)).toEqual([1, 2]);
  });

  it('evaluates a count over two processes and fires once', async () => {
    const own = await insertDevice(database.db);
    await installProfile(database.db, own, [countingPurpose(5)]);
    const other = ingestProcess(database.url);
    for (const n of [1, 2, 3]) {
      await process.ingest.ingest(own, measured('0x01', [now + n, 20 + n]), forever);
    }
    for (const n of [4, 5]) {
      await other.ingest.ingest(own, measured('0x01', [now + n, 20 + n]), forever);
    }
    // The first process still remembers three matches. Its version is old, so it reads again.
    await process.ingest.ingest(own, measured('0x01', [now + 6, 26]), forever);
    await other.close();
    const events = await recordedEvents(database.db, own);
    expect(events.map(({ type, ts }) => [type, ts])).toEqual([
      ['device', now],
      ['sense', now + 5],
    ]);
  });

  it('evaluates a redelivered message once', async () => {
    const own = await insertDevice(database.db);
    await installProfile(database.db, own, [countingPurpose(2)]);
    await process.ingest.ingest(own, measured('0x01', [now, 21]), forever);
    await process.ingest.ingest(own, measured('0x01', [now, 21]), forever);
    expect(await recordedEvents(database.db, own)).toHaveLength(1);
    await process.ingest.ingest(own, measured('0x01', [now + 1, 22]), forever);
    const events = await recordedEvents(database.db, own);
    expect(events.map(({ type }) => type)).toEqual(['device', 'sense']);
  });

  it('continues after every connection was cut, and stores nothing twice', async () => {
    const own = await insertDevice(database.db);
    await installProfile(database.db, own, [countingPurpose(1_000)]);
    const sent = Array.from({ length: 300 }, (_, n) => n);
    const acknowledged = sent.map((n) =>
      process.ingest.ingest(own, measured('0x01', [now + n, n]), forever),
    );
    await database.db
      .query(
        'select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database()',
      )
      .catch(() => undefined);
    await Promise.all(acknowledged);
    expect(await storedValues(database.db, own)).toEqual(sent);
  });

  it('does not take a device for removed that a notice made it forget while others were read', async () => {
    const [known, other] = [await insertDevice(database.db), await insertDevice(database.db)];
    await process.ingest.ingest(known, measured('0x01', [now, 1]), forever);
    const holder = await database.db.pool.connect();
    try {
      await holder.query('begin; lock table device in access exclusive mode');
      const stored = [known, other].map((device) =>
        process.ingest.ingest(device, measured('0x01', [now + 1, 2]), forever),
      );
      await waitForBlocked(database.db);
      process.bus.publish('device', { deviceId: known.deviceId, uuid: known.uuid });
      await holder.query('commit');
      await Promise.all(stored);
    } finally {
      holder.release();
    }
    expect(await storedValues(database.db, known)).toEqual([1, 2]);
  });

  it('nor one that was forgotten while the commands that are answered were read', async () => {
    const own = await insertDevice(database.db);
    await process.ingest.ingest(own, measured('0x01', [now, 1]), forever);
    const holder = await database.db.pool.connect();
    const answer = { commandId: '1b4e28ba-2fa1-41d2-883f-0016d3cca427', state: 'done' as const };
    try {
      await holder.query('begin; lock table command in access exclusive mode');
      const answered = process.ingest.ingest(
        own,
        uplink({ kind: 'command-answer', answer }),
        forever,
      );
      await waitForBlocked(database.db);
      process.bus.publish('device', { deviceId: own.deviceId, uuid: own.uuid });
      await holder.query('commit');
      await answered;
    } finally {
      holder.release();
    }
    expect(await rejections(database.db, own)).toMatchObject([{ reason: 'unknown-command' }]);
  });

  it('withdraws a message that is in no transaction when its connection closes', async () => {
    const own = await insertDevice(database.db);
    const holder = await database.db.pool.connect();
    try {
      await holder.query('begin; lock table measurement in access exclusive mode');
      const first = process.ingest.ingest(own, measured('0x01', [now, 1]), forever);
      await waitForBlocked(database.db);
      const connection = new AbortController();
      const second = process.ingest.ingest(own, measured('0x01', [now + 1, 2]), connection.signal);
      const withdrawn = expect(second).rejects.toMatchObject({ code: 'unavailable' });
      const third = process.ingest.ingest(own, measured('0x01', [now + 2, 3]), forever);
      connection.abort();
      // While the previous transaction still waits for the database.
      process.ingest.withdraw(own);
      await withdrawn;
      expect(process.ingest.depth()).toBe(2);
      await holder.query('commit');
      await Promise.all([first, third]);
    } finally {
      holder.release();
    }
    expect(await storedValues(database.db, own)).toEqual([1, 3]);
    expect(process.ingest.depth()).toBe(0);
  });
});
