import { afterAll, beforeAll, expect, test } from 'vitest';
import { addDevice, type Freezer, type House, openHouse, send, tooWarm } from '../alarms/house.ts';
import { configuration } from '../journeys/app.ts';

const ends: (() => Promise<unknown>)[] = [];
let house: House;
let warm: Freezer;
let cold: Freezer;
let silent: Freezer;
beforeAll(async () => {
  house = await openHouse(ends);
  warm = await addDevice(house, [tooWarm()]);
  cold = await addDevice(house, [tooWarm()]);
  silent = await addDevice(house, [tooWarm()]);
  // Only the newest value counts.
  for (const val of [5, 9]) await send(warm, val);
  for (const val of [9, 5]) await send(cold, val);
});
afterAll(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

type Listed = { devices: { uuid: string }[]; counts: { matching: number; within: number } };

async function list(query: string): Promise<string[]> {
  const { devices, counts } = await house.app.call<Listed>(
    'GET',
    `/v2/devices?sort=registeredTs&counts=true&${query}`,
  );
  expect(counts).toMatchObject({ matching: devices.length, within: devices.length });
  return devices.map(({ uuid }) => uuid);
}

test('by the newest value of a sense', async () => {
  expect(await list('value=0x01:gt:8')).toEqual([warm.uuid]);
  expect(await list('value=0x01:gt:9')).toEqual([]);
  expect(await list('value=0x01:lt:9.5')).toEqual([warm.uuid, cold.uuid]);
  expect(await list('value=0x01:lt:-1e3')).toEqual([]);
  expect(await list('value=another:gt:0')).toEqual([]);
});

test('in the order of the newest values of a sense, page by page; without a value last', async () => {
  const walk = async (sort: string) => {
    const uuids: string[] = [];
    let path: string | undefined = `/v2/devices?limit=1&sort=${sort}`;
    while (path !== undefined) {
      const { body, next }: { body: unknown; next?: string | undefined } =
        await house.app.page(path);
      uuids.push(...(body as Listed).devices.map(({ uuid }) => uuid));
      path = next;
    }
    return uuids;
  };
  expect(await walk('value:0x01')).toEqual([cold.uuid, warm.uuid, silent.uuid]);
  expect(await walk('-value:0x01')).toEqual([warm.uuid, cold.uuid, silent.uuid]);
});

test('by whether it is beyond a limit of the profile that runs', async () => {
  expect(await list('beyond=true')).toEqual([warm.uuid]);
  expect(await list('beyond=false')).toEqual([cold.uuid, silent.uuid]);
  expect(await list('beyond=true&value=0x01:lt:9')).toEqual([]);
  for (const [isGt, found] of [
    [20, []],
    [8, [warm.uuid]],
  ] as const) {
    const causes = [{ sId: '0x01', thresholds: { isGt } }];
    const body = { deviceAuthUuids: [warm.uuid], purposes: [tooWarm({}, { causes })] };
    await house.app.call('POST', '/v2/devices/profile', body);
    await send(warm, 9);
    await expect.poll(() => list('beyond=true')).toEqual(found);
  }
});

test('by what its configuration says it runs', async () => {
  const device = { ...configuration.device, swVersion: '1.4.2', hwVersion: 'C' };
  await house.app.call('PUT', `/v2/devices/${cold.uuid}/configuration`, {
    ...configuration,
    device,
  });
  expect(await list('swVersion=1.4.2')).toEqual([cold.uuid]);
  expect(await list('swVersion=1.4.2&hwVersion=B')).toEqual([]);
  expect(await list('swVersion=1.4')).toEqual([]);
});

test('an action takes the same filters', async () => {
  const { jobId } = await house.app.call<{ jobId: string }>('POST', '/v2/devices/actions', {
    action: 'label',
    labels: ['too warm'],
    filter: { beyond: true, value: '0x01:gt:8' },
  });
  const job = async () => house.app.call<{ state: string; of: number }>('GET', `/v2/jobs/${jobId}`);
  await expect.poll(async () => (await job()).state, { timeout: 60_000 }).toBe('done');
  expect(await list('label=too%20warm')).toEqual([warm.uuid]);
});

test.each(['0x01', '0x01:gt', '0x01:above:8', ':gt:8', '0x01:gt:eight', '0x01:gt:1e999'])(
  'the filter %s says what was expected',
  async (value) => {
    const query = `/v2/devices?value=${encodeURIComponent(value)}`;
    await expect(house.app.call('GET', query)).rejects.toThrow(/sId:gt:number/u);
  },
);
