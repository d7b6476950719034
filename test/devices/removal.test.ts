import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { operator } from '../../src/audit/audit.ts';
import { createClearing } from '../../src/history/clear-removed.ts';
import { startUpkeep } from '../../src/history/upkeep.ts';
import { monotonicClock } from '../../src/lib/clock.ts';
import { type App, startApp } from './app.ts';

let app: App;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());

describe('4.3 Remove device', () => {
  test('answers {timestamp, message}; the device and everything that belongs to it is gone', async () => {
    const token = await app.account();
    const device = await app.device(token);
    await app.install(token, [device.uuid]);
    app.told.length = 0;
    const answer = await app.call('DELETE', `/v2/devices/${device.uuid}`, { token });
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({ timestamp: expect.any(Number), message: expect.any(String) });
    // Its history is deleted after the answer.
    await expect.poll(() => app.purged.flat(), { timeout: 60_000 }).toContain(device.deviceId);
    const { deviceId } = device;
    expect(app.told).toEqual([{ channel: 'access', message: { deviceId, uuid: device.uuid } }]);
    const again = await app.call('DELETE', `/v2/devices/${device.uuid}`, { token });
    expect(again.status).toBe(404);
    const leftOver = async () => {
      const { rows } = await app.db.query(
        `select from device_state where device_id = $1
         union all select from device_profile where device_id = $1
         union all select from removed_device where device_id = $1`,
        [deviceId],
      );
      return rows;
    };
    await expect.poll(leftOver, { timeout: 60_000 }).toEqual([]);
  });

  test('what a failed purge left is deleted later', async () => {
    const token = await app.account();
    const device = await app.device(token);
    app.purging.fails = true;
    const answer = await app.call('DELETE', `/v2/devices/${device.uuid}`, { token });
    expect(answer.status).toBe(200);
    await expect.poll(() => app.purging.failed, { timeout: 60_000 }).toBe(1);
    app.purging.fails = false;
    expect(app.purged).not.toContainEqual([device.deviceId]);
    await app.clearing.resume();
    expect(app.purged).toContainEqual([device.deviceId]);
    app.purged.length = 0;
    await app.clearing.resume();
    expect(app.purged).toEqual([]);
  });

  test('what an interrupted purge left is deleted by the next upkeep', async () => {
    const token = await app.account();
    const device = await app.device(token);
    await app.db.query('delete from device where id = $1', [device.deviceId]);
    const errors: unknown[] = [];
    app.purging.fails = true;
    const stop = startUpkeep({
      db: app.db,
      settleRetention: async () => ({ eventsDays: 365, measurementsDays: 90 }),
      intervalMs: 20,
      believedTs: Date.now,
      onError: (error) => {
        errors.push(error);
        app.purging.fails = errors.length < 3;
      },
      onFailedJobs: () => {},
      onDoubt: () => {},
      // A chore that fails before it does not prevent it.
      timelessChores: [() => Promise.reject(new Error('another chore')), app.clearing.resume],
    });
    await expect.poll(() => app.purged.flat(), { timeout: 60_000 }).toContain(device.deviceId);
    await stop();
    const { rows } = await app.db.query('select from removed_device');
    expect(rows).toEqual([]);
  });

  test('one process at a time deletes what is left', async () => {
    const token = await app.account();
    const devices = [await app.device(token), await app.device(token)];
    const ids = devices.map(({ deviceId }) => deviceId);
    await app.db.query('delete from device where id = any($1)', [ids]);
    const { promise: isPurging, resolve: begin } = Promise.withResolvers<void>();
    const { promise: mayEnd, resolve: end } = Promise.withResolvers<void>();
    const purged: number[][] = [];
    const { db } = app;
    const first = createClearing({
      db,
      monotonicClock,
      detach: async () => 0,
      async purge(_db, { deviceIds }) {
        begin();
        await mayEnd;
        purged.push(deviceIds);
        return true;
      },
      onError: () => {},
    });
    const clearing = first.resume();
    await isPurging;
    app.purged.length = 0;
    await app.clearing.resume();
    expect(app.purged).toEqual([]);
    end();
    await clearing;
    expect(purged.flat().toSorted((a, b) => a - b)).toEqual(ids);
    const { rows } = await db.query('select from removed_device');
    expect(rows).toEqual([]);
  });

  test('can be stopped between two batches of devices', async () => {
    const token = await app.account();
    const { deviceId } = await app.device(token);
    await app.db.query('delete from device where id = $1', [deviceId]);
    app.purged.length = 0;
    await app.clearing.resume(AbortSignal.abort());
    expect(app.purged).toEqual([]);
    await app.clearing.resume();
    expect(app.purged).toEqual([[deviceId]]);
  });

  test('devices that are removed with their account are recorded too', async () => {
    const token = await app.account();
    const device = await app.device(token);
    await app.db.query('delete from account where id = $1', [Number(token)]);
    await app.clearing.resume();
    expect(app.purged.flat()).toContain(device.deviceId);
  });

  test('waits for an ingest that has read the device, so that no late row appears', async () => {
    const token = await app.account();
    const device = await app.device(token);
    let removed = false;
    let removal: Promise<unknown> | undefined;
    await app.db.transaction(async (tx) => {
      await tx.query('select pg_advisory_xact_lock_shared(7201)');
      removal = app.removal
        .removeDevice(Number(token), device.uuid, { actor: operator, ts: Date.now() })
        .then(() => (removed = true));
      await expect
        .poll(async () => {
          const { rows } = await app.db.query(
            `select from pg_locks where locktype = 'advisory' and objid = 7201 and not granted
                and database = (select oid from pg_database where datname = current_database())`,
          );
          return rows.length;
        })
        .toBe(1);
      expect(removed).toBe(false);
    });
    await removal;
    expect(removed).toBe(true);
  });
});
