import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Purpose } from '../../src/contract/purpose.ts';
import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import type { Database } from '../../src/db/database.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import {
  forever,
  ingestProcess,
  insertDevice,
  insertDevices,
  installOn,
  installProfile,
} from './harness.ts';
import { measured, now, rejections, storedValues, type IngestProcess } from './harness.ts';

let database: TestDatabase;
let db: Database;
beforeAll(async () => {
  database = await testDatabase();
  ({ db } = database);
});
afterAll(() => database.drop());

/** This many causes read 0x01; none of them fires. */
function expensivePurpose(causes: number, texts = ''): Purpose {
  const never = { sId: '0x01', thresholds: { isGt: 1_000 } };
  const often = { sId: '0x01', threshold: { count: 20 }, thresholds: { isGt: 0 } };
  const events = Array.from({ length: causes / 16 }, (_, evId) => ({
    evId,
    name: `${texts}${evId}`,
    causes: [never, ...Array.from({ length: 15 }, () => often)],
  }));
  return Purpose.parse({ puId: 1, initStId: 1, states: [{ stId: 1, events }] });
}

const points = (count: number, from = 0): [number, number][] =>
  Array.from({ length: count }, (_, n) => [now + from + n, 1 + (n % 9)]);

describe('a quiet account beside a noisy one', () => {
  test.each([
    ['whose devices are not known yet', false],
    ['whose devices are known', true],
  ])('%s waits for a few transactions', async (_how, areKnown) => {
    const devices = await insertDevices(db, 2_000);
    await installOn(db, devices, [expensivePurpose(256)]);
    const quiet = await insertDevice(db);
    // One transaction at a time, so that others cannot pass a slow one.
    const process = ingestProcess(database.url, { maxInFlight: 1 });
    let open = 0;
    const sendAll = (count: number, from: number) =>
      Promise.all(
        devices.map(async (device) => {
          open += 1;
          await process.ingest.ingest(device, measured('0x01', ...points(count, from)), forever);
          open -= 1;
        }),
      );
    if (areKnown) await sendAll(1, 0);
    const noisy = sendAll(10, 1);
    const waits: number[] = [];
    for (let n = 0; open > 0; n++) {
      const before = process.transactions();
      await process.ingest.ingest(quiet, measured('0x01', [now + n, n]), forever);
      if (open > 0) waits.push(process.transactions() - before);
    }
    await noisy;
    expect(waits.length).toBeGreaterThan(5);
    // The one under way and one behind it, plus its own and one begun while that was committed.
    expect(Math.max(...waits)).toBeLessThanOrEqual(4);
    await process.close();
  });
});

describe('a fault of one account', () => {
  let process: IngestProcess;
  let blamed: DeviceIdentity;
  let others: DeviceIdentity[];

  /** All devices are known, and the next message of each shares a transaction. */
  async function start(): Promise<void> {
    process = ingestProcess(database.url);
    blamed = await insertDevice(db);
    others = [await insertDevice(db), await insertDevice(db), await insertDevice(db)];
    for (const device of [blamed, ...others]) {
      await installProfile(db, device, [expensivePurpose(16)]);
      await process.ingest.ingest(device, measured('0x01', [now, 1]), forever);
    }
    process.tries.length = 0;
  }

  const sendAll = (given: [number, number][]) =>
    Promise.all([
      process.ingest.ingest(blamed, measured('0x01', ...given), forever),
      ...others.map((device) =>
        process.ingest.ingest(device, measured('0x01', [now + 1, 2]), forever),
      ),
    ]);

  /** How often others were in a transaction, and how often together with the one at fault. */
  function triesOf({ deviceId }: DeviceIdentity) {
    const own = process.tries.filter((devices) => devices.has(deviceId));
    return [own.length, own.filter((devices) => devices.has(blamed.deviceId)).length];
  }

  test('a row that the database refuses: the others’ rows take one more transaction', async () => {
    await start();
    await db.query(`
      create function refuse() returns trigger language plpgsql as
      $$ begin raise exception 'poison' using errcode = '22000'; end $$;
      create trigger poison before insert on measurement
      for each row when (new.val = 666) execute function refuse()`);
    const given = points(50, 1);
    given[33] = [now + 34, 666];
    await sendAll(given);
    await db.query('drop trigger poison on measurement');
    for (const other of others) {
      expect(triesOf(other)).toEqual([2, 1]);
      expect(await storedValues(db, other)).toEqual([1, 2]);
    }
    expect(await storedValues(db, blamed)).toHaveLength(50);
    expect(await rejections(db, blamed)).toMatchObject([{ reason: 'unstorable', path: '/33' }]);
    await process.close();
  });

  test('a device that changed meanwhile: the others are stored without it', async () => {
    await start();
    await db.query('update device_state set version = version + 1 where device_id = $1', [
      blamed.deviceId,
    ]);
    await sendAll(points(3, 1));
    for (const other of others) {
      expect(triesOf(other)).toEqual([2, 1]);
      expect(await storedValues(db, other)).toEqual([1, 2]);
    }
    expect(triesOf(blamed)).toEqual([2, 2]);
    expect(await storedValues(db, blamed)).toEqual([1, 1, 2, 3]);
    await process.close();
  });

  test('a full millisecond: the others are stored without it', async () => {
    await start();
    const full = Array.from({ length: 1_000 }, (_, n): [number, number] => [now + 9, n]);
    await process.ingest.ingest(blamed, measured('0x01', ...full), forever);
    process.tries.length = 0;
    await sendAll([[now + 9, 5_000]]);
    // Repeated values are looked up for all, at most once in ten seconds.
    const [tries = 0, together] = triesOf(others[0] as DeviceIdentity);
    expect(tries - (together ?? 0)).toBe(1);
    expect(tries).toBeLessThanOrEqual(3);
    for (const other of others) expect(await storedValues(db, other)).toEqual([1, 2]);
    expect(await rejections(db, blamed)).toMatchObject([{ reason: 'unstorable' }]);
    await process.close();
  });
});

test('many large profiles are read in several transactions after a start', async () => {
  const devices = await insertDevices(db, 40);
  const text = 'x'.repeat(14_000);
  for (const device of devices) await installOn(db, [device], [expensivePurpose(256, text)]);
  const process = ingestProcess(database.url);
  await Promise.all(
    devices.map((device) => process.ingest.ingest(device, measured('0x01', [now, 1]), forever)),
  );
  expect(process.transactions()).toBeGreaterThanOrEqual(3);
  for (const device of devices) expect(await storedValues(db, device)).toEqual([1]);
  await process.close();
});
