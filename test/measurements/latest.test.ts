import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import * as app from '../events/app.ts';
import { databaseKinds } from '../support/database.ts';
import { pointsIn, type Point } from './harness.ts';

type Latest = Point & { deviceAuthUuid: string };

const dayMs = 86_400_000;
const t0 = Date.UTC(2026, 5, 1);

describe.each(databaseKinds)('the newest measurements on %s', (kind) => {
  let history: app.OwnHistory;
  const { store, addDevice } = pointsIn(() => history);
  beforeAll(async () => {
    history = await app.openHistory(kind);
  });
  afterAll(() => history?.close());

  async function latest(accountId: number, query = ''): Promise<Latest[]> {
    const body = await history.json(`/v2/measurements/latest?${query}`, accountId);
    return body['latest'] as Latest[];
  }

  test('are the newest of each sense by time, whenever they arrived, positions included', async () => {
    const device = await app.newDevice(history.db);
    await store(
      device,
      { sId: '0x1', ts: t0, val: 1 },
      { sId: '0x1', ts: t0 - 30 * dayMs, val: 2 },
      { sId: '0x2', ts: t0 - 40 * dayMs, val: 3 },
      { sId: '0x3', ts: t0, val: 52.5, long: -13.25 },
    );
    await store(device, { sId: '0x1', ts: t0 - 1, val: 4 });
    const { uuid: deviceAuthUuid, accountId } = device;
    expect(await latest(accountId)).toEqual([
      { deviceAuthUuid, sId: '0x1', ts: t0, val: 1 },
      { deviceAuthUuid, sId: '0x2', ts: t0 - 40 * dayMs, val: 3 },
      { deviceAuthUuid, sId: '0x3', ts: t0, val: { lat: 52.5, long: -13.25 } },
    ]);
  });

  test('describe the senses on request', async () => {
    const device = await app.newDevice(history.db);
    const { deviceId, accountId, uuid: deviceAuthUuid } = device;
    const senses = [
      { sId: '0x1', name: 'Temperature', unit: '°C', decimals: 1 },
      { sId: '0x2', unit: '%' },
      { sId: '0x3' },
    ];
    const configuration = { device: {}, module: [{ moduleId: 'a' }, { moduleId: 'b', senses }] };
    await history.db.query('update device set configuration = $2 where id = $1', [
      deviceId,
      JSON.stringify(configuration),
    ]);
    for (const sId of ['0x1', '0x2', '0x3', '0x4']) await store(device, { sId, ts: t0, val: 1 });
    const found = (sId: string, words: object = {}) => ({
      deviceAuthUuid,
      sId,
      ts: t0,
      val: 1,
      ...words,
    });
    const first = found('0x1', { name: 'Temperature', unit: '°C', decimals: 1 });
    expect(await latest(accountId, 'describe=true')).toEqual([
      first,
      found('0x2', { unit: '%' }),
      found('0x3'),
      found('0x4'),
    ]);
    expect(await latest(accountId, 'describe=true&senses=0x1')).toEqual([first]);
    expect(await latest(accountId, 'senses=0x1')).toEqual([found('0x1')]);
  });

  test('have the plain limits of the current profile, and the time of the value before', async () => {
    const device = await app.newDevice(history.db);
    const { deviceId, accountId } = device;
    const other = await addDevice(accountId);
    const event = (sId: string, thresholds: object, more: object = {}, actions: object = {}) => ({
      evId: 1,
      causes: [{ sId, orderId: 1, threshold: { count: 1, negate: false, ...more }, thresholds }],
      actions: { alarm: true, ...actions },
    });
    const events = [
      event('0x1', { isGt: 8 }),
      event('0x1', { isGt: 6.5 }),
      event('0x1', { isLt: -2 }),
      // None of these is a plain limit.
      event('0x1', { isGt: 1 }, {}, { alarm: false }),
      event('0x1', { isGt: 2 }, { over: { stat: 'avg', ms: 60_000 } }),
      event('0x1', { isGt: 3 }, { relative: true }),
      event('0x2', { isGt: 4 }, { negate: true }),
      event('0x2', { isGt: 4, isLt: 9 }),
      {
        ...event('0x2', { isGt: 5 }),
        causes: [...event('0x2', { isGt: 5 }).causes, ...event('0x1', { isLt: 0 }).causes],
      },
    ];
    const moves = {
      evId: 1,
      causes: event('0x1', { isLt: 7 }).causes,
      actions: { engine: { gotoStId: 1 }, cloud: { sendPush: true } },
    };
    const purposes = [
      {
        puId: 1,
        initStId: 1,
        states: [
          { stId: 1, events },
          { stId: 2, events: [moves] },
        ],
      },
    ];
    await history.db.query(
      `with c as (
         insert into profile_content (account_id, hash, bytes, purposes) values ($1, '\\x01', 9, $3) returning id
       ), p as (
         insert into profile (id, account_id, content_id) select gen_random_uuid(), $1, id from c returning id
       )
       insert into device_profile (device_id, profile_id, state) select $2, id, 'current' from p`,
      [accountId, deviceId, JSON.stringify(purposes)],
    );
    for (const sId of ['0x1', '0x2']) await store(device, { sId, ts: t0, val: 9 });
    await store(device, { sId: '0x1', ts: t0 - 600_000, val: 1 });
    await store(other, { sId: '0x1', ts: t0, val: 9 });
    expect(await latest(accountId, 'describe=true')).toEqual([
      {
        deviceAuthUuid: device.uuid,
        sId: '0x1',
        ts: t0,
        val: 9,
        beforeTs: t0 - 600_000,
        above: 6.5,
        below: -2,
      },
      { deviceAuthUuid: device.uuid, sId: '0x2', ts: t0, val: 9 },
      { deviceAuthUuid: other.uuid, sId: '0x1', ts: t0, val: 9 },
    ]);
    expect((await latest(accountId))[0]).not.toHaveProperty('above');
  });

  test('of one millisecond are the one that arrived last', async () => {
    const device = await app.newDevice(history.db);
    await store(device, { sId: '0x1', ts: t0, val: 1 }, { sId: '0x1', ts: t0, val: 2 });
    expect(await latest(device.accountId)).toMatchObject([{ ts: t0, val: 2 }]);
  });

  test('can be selected by device, label and sense; a device without any has none', async () => {
    const first = await app.newDevice(history.db);
    const second = await addDevice(first.accountId, ['cellar', 'wine']);
    const silent = await addDevice(first.accountId, ['cellar']);
    for (const device of [first, second])
      for (const sId of ['0x1', '0x2']) await store(device, { sId, ts: t0, val: 1 });
    const found = async (query: string) =>
      (await latest(first.accountId, query)).map(({ deviceAuthUuid, sId }) => [
        [first, second, silent].findIndex(({ uuid }) => uuid === deviceAuthUuid),
        sId,
      ]);
    expect(await found(`devices=${first.uuid},${silent.uuid}`)).toEqual([
      [0, '0x1'],
      [0, '0x2'],
    ]);
    expect(await found('label=cellar&senses=0x2')).toEqual([[1, '0x2']]);
    // Fewer on a page than are named: those of the next page are not unknown.
    expect(await found(`devices=${first.uuid},${second.uuid},${silent.uuid}&limit=1`)).toEqual([
      [0, '0x1'],
      [0, '0x2'],
    ]);
    expect(await found('label=cell')).toEqual([]);
    expect(await found('senses=0x1')).toEqual([
      [0, '0x1'],
      [1, '0x1'],
    ]);
  });

  test('are paged by device', async () => {
    const first = await app.newDevice(history.db);
    const others = [await addDevice(first.accountId), await addDevice(first.accountId)];
    for (const device of [first, ...others]) await store(device, { sId: '0x1', ts: t0, val: 1 });
    let at: string | null = '/v2/measurements/latest?limit=2';
    const pages: number[] = [];
    while (at !== null) {
      const response: Response = await history.get(at, first.accountId);
      pages.push(((await response.json()) as { latest: Latest[] }).latest.length);
      at = app.nextOf(response);
    }
    expect(pages).toEqual([2, 1]);
  });

  test("of another account's device give 404, and of something that is no identifier 400", async () => {
    const device = await app.newDevice(history.db);
    const foreign = await app.newDevice(history.db);
    const ask = async (query: string) => {
      const response = await history.get(`/v2/measurements/latest?${query}`, device.accountId);
      return [response.status, await response.text()] as const;
    };
    const [status, text] = await ask(`devices=${device.uuid},${foreign.uuid}`);
    expect(status).toBe(404);
    expect(text).toContain(foreign.uuid);
    expect(text).not.toContain(device.uuid);
    expect((await ask('devices=freezer'))[0]).toBe(400);
    expect((await ask('devices='))[0]).toBe(400);
    expect(await latest(device.accountId)).toEqual([]);
  });
});
