import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { thresholdPurpose, type Registration } from '../journeys/app.ts';
import { connectDevice, type TestDevice } from '../journeys/device.ts';
import { databaseKinds } from '../support/database.ts';
import { csvOf, importerOf, openImporter, startInstallation } from './harness.ts';
import type { Importer, Installation } from './harness.ts';

describe.each(databaseKinds)(
  'an import beside what devices send, in two processes on %s',
  (kind) => {
    /** Devices connect to the first one; imports go to the second. */
    let first: Installation;
    let second: Installation;
    let own: Importer;
    let far: Importer;
    beforeAll(async () => {
      first = await startInstallation({}, { kind });
      second = await startInstallation({ DATABASE_URL: first.databaseUrl }, { kind });
      own = await openImporter(first.url);
      far = importerOf(second.url, own.token);
    });
    afterAll(async () => {
      await second?.close();
      await first?.close();
    });

    /** A device that is evaluated: an event is recorded when 0x01 exceeds 30. */
    async function connectWatched(): Promise<TestDevice> {
      const registration: Registration = await own.register();
      await own.json('POST', '/v2/devices/profile', {
        deviceAuthUuids: [registration.deviceAuthUuid],
        purposeUuids: [],
        purposes: [thresholdPurpose(7, 30)],
      });
      return connectDevice(registration);
    }

    const eventsOf = async ({ uuid }: TestDevice) => {
      const { events } = await own.json('GET', `/v2/events/${uuid}?type=sense`);
      return (events as { timestamp: number }[]).map(({ timestamp }) => timestamp);
    };
    const measure = ({ publish }: TestDevice, ts: number, val: number) =>
      publish('up/measurements', { sId: '0x01', val, ts });
    const line = ({ uuid }: TestDevice, ts: number, val: number) => `${uuid},0x01,${ts},${val},,`;

    /** Everything that shows what a device did and what was made of it, except its row's version. */
    async function standOf({ uuid }: TestDevice) {
      const { rows } = await first.db.query(
        `select s.pu_id, s.st_id, s.state_at, s.runtime::text,
              (select json_agg(l.measurements) from evidence_log l where l.device_id = d.id) as log,
              (select count(*) from event e where e.device_id = d.id) as events,
              (select due_at from device_due u where u.device_id = d.id) as due
         from device d
         join device_state s on s.device_id = d.id
        where d.uuid = $1`,
        [uuid],
      );
      return rows[0] as unknown;
    }

    test.each([
      ['the same value first', [2_000, 32], [1_000, 34]],
      ['an older time first', [1_000, 34], [2_000, 32]],
    ])(
      "is not evaluated, and counts as stored for the device's own messages: %s",
      async (_name, ...next) => {
        const device = await connectWatched();
        const ts = Date.now() - 60_000;
        await measure(device, ts, 31);
        expect(await eventsOf(device)).toEqual([ts]);
        const before = await standOf(device);
        const lines = [line(device, ts + 2_000, 32), line(device, ts - 5_000, 33)];
        expect(await far.import(csvOf(...lines))).toMatchObject({ status: 200, stored: 2 });
        expect(await standOf(device)).toEqual(before);
        // The same value is a repetition, an older one is late, and a newer one is evaluated.
        for (const [afterMs = 0, val = 0] of next) await measure(device, ts + afterMs, val);
        expect(await eventsOf(device)).toEqual([ts]);
        await measure(device, ts + 3_000, 35);
        expect(await eventsOf(device)).toEqual([ts + 3_000, ts]);
        const { measurements } = await own.json('GET', `/v2/measurements/${device.uuid}`);
        expect((measurements as { val: number }[]).map(({ val }) => val)).toEqual([
          35, 32, 34, 31, 33,
        ]);
        await device.end();
      },
    );

    test('leaves a device that was never seen unseen', async () => {
      const { deviceAuthUuid: uuid } = await own.register();
      const { stored } = await far.import(csvOf(`${uuid},0x01,${Date.now()},31,,`));
      expect(stored).toBe(1);
      const { rows } = await first.db.query(
        `select from presence join device on device.id = device_id where uuid = $1`,
        [uuid],
      );
      expect(rows).toEqual([]);
      expect(await own.json('GET', `/v2/devices`)).toMatchObject({
        devices: expect.arrayContaining([
          expect.objectContaining({ uuid, connected: false, lastSeenTs: null }),
        ]) as unknown,
      });
    });

    test("that is partly in the future does not change the sense's clock", async () => {
      const device = await connectWatched();
      const ts = Date.now() - 60_000;
      await measure(device, ts, 31);
      await far.import(
        csvOf(line(device, Date.now() + 200_000, 40), line(device, ts + 10_000, 41)),
      );
      await measure(device, ts + 9_000, 32);
      expect(await eventsOf(device)).toEqual([ts]);
      await measure(device, ts + 11_000, 33);
      expect(await eventsOf(device)).toEqual([ts + 11_000, ts]);
      // The same if there is such a clock already.
      await far.import(
        csvOf(line(device, Date.now() + 250_000, 40), line(device, ts + 20_000, 41)),
      );
      await measure(device, ts + 19_000, 34);
      expect(await eventsOf(device)).toEqual([ts + 11_000, ts]);
      await measure(device, ts + 21_000, 35);
      expect(await eventsOf(device)).toEqual([ts + 21_000, ts + 11_000, ts]);
      await device.end();
    });

    test('of measurements that are being sent at that moment: each is stored once, nothing fails, no deadlock', async () => {
      const devices = await Promise.all([1, 2, 3].map(connectWatched));
      const ts = Date.now() - 600_000;
      const sent = Array.from({ length: 400 }, (_, n) => ({ ts: ts + n * 1_000, val: n % 29 }));
      // Each has them in another order.
      const lines = devices.flatMap((device) =>
        sent.toReversed().map((one) => line(device, one.ts, one.val)),
      );
      const [receipt] = await Promise.all([
        far.import(csvOf(...lines)),
        ...devices.flatMap((device) =>
          Array.from({ length: 40 }, (_, n) =>
            device.publish(
              'up/measurements',
              sent.slice(n * 10, n * 10 + 10).map((one) => ({ sId: '0x01', ...one })),
            ),
          ),
        ),
      ]);
      expect(receipt).toMatchObject({ status: 200, rejected: 0 });
      expect(receipt.stored + receipt.repeated).toBe(lines.length);
      for (const { uuid } of devices) {
        const { measurements } = await own.json('GET', `/v2/measurements/${uuid}?limit=1000`);
        expect(measurements).toEqual(sent.toReversed().map((one) => ({ sId: '0x01', ...one })));
        const { rejections } = await own.json('GET', `/v2/devices/${uuid}/rejections`);
        expect(rejections).toEqual([]);
      }
      const { rows } = await first.db.query<{ deadlocks: number }>(
        'select deadlocks::integer from pg_stat_database where datname = current_database()',
      );
      expect(rows).toEqual([{ deadlocks: 0 }]);
      await Promise.all(devices.map((device) => device.end()));
    });

    test('that waits for a device, whose next transaction waits for the import, gives way', async () => {
      const { deviceAuthUuid: uuid } = await own.register();
      const ts = Date.now() - 86_400_000;
      const rows = [ts, ts + 1_000].map((at) => `${uuid},0x02,${at},1,,`);
      await own.import(csvOf(rows[0] ?? ''));
      let importing: Promise<unknown> | undefined;
      await first.db.transaction(async (tx) => {
        // As ingest does: first the device's row, then its measurements.
        await tx.query(
          `select from device_state where device_id = (select id from device where uuid = $1) for update`,
          [uuid],
        );
        importing = far.import(csvOf(...rows));
        await expect
          .poll(
            async () => {
              const { rows: waiting } = await first.db.query(
                `select pid from pg_stat_activity
                  where datname = current_database() and wait_event_type = 'Lock'`,
              );
              return waiting.length;
            },
            { interval: 1, timeout: 60_000 },
          )
          .toBeGreaterThan(0);
        await tx.query(
          `insert into measurement (series_id, ts, val)
         select series.id, ms_to_timestamp($2), 1
           from series join device on device.id = device_id where uuid = $1`,
          [uuid, ts + 1_000],
        );
      });
      expect(await importing).toMatchObject({ status: 200, stored: 0, repeated: 2, errors: [] });
    });

    test('twice at once: each line is stored by one of them', async () => {
      const { deviceAuthUuid: uuid } = await own.register();
      const ts = Date.now() - 30 * 86_400_000;
      const lines = Array.from({ length: 30_000 }, (_, n) => `${uuid},0x02,${ts + n * 997},${n},,`);
      const both = await Promise.all([own.import(csvOf(...lines)), far.import(csvOf(...lines))]);
      for (const { status, stored, repeated, errors } of both)
        expect([status, stored + repeated, errors]).toEqual([200, lines.length, []]);
      expect(both.reduce((sum, { stored }) => sum + stored, 0)).toBe(lines.length);
      const { rows } = await first.db.query(
        `select count(*)::integer, count(distinct ts)::integer as times
         from measurement join series on series.id = series_id join device on device.id = device_id
        where uuid = $1`,
        [uuid],
      );
      expect(rows).toEqual([{ count: lines.length, times: lines.length }]);
    });
  },
);
