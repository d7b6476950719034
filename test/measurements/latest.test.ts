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
