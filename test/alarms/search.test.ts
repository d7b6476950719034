import { afterAll, beforeAll, expect, it } from 'vitest';
import type { Registration } from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';
import { runOn, schema } from '../support/template.ts';
import { openHouse, tooWarm, type House } from './house.ts';

const hourAgoTs = Date.now() - 3_600_000;
const ends: (() => Promise<unknown>)[] = [];
let house: House;

type Listed = {
  alarms: { alarmId: number; deviceName: string; eventName: string; severity: string }[];
  total?: number;
  groups?: { name: string; total: number; severity: string; beganTs: number }[];
};

/** A device of this name that has an alarm of each of these events. `ts`: when it was warm; it says so only now. */
async function addRoom(
  name: string,
  labels: string[],
  purposes: object[],
  values: readonly number[] = [9],
  ts = Date.now(),
) {
  const { app } = house;
  const module = [{ moduleId: 'm', senses: [{ sId: '0x01' }] }];
  const registration = await app.call<Registration>('POST', '/v2/devices', {
    device: { name },
    module,
    labels,
  });
  const { deviceAuthUuid: uuid } = registration;
  await app.call('POST', '/v2/devices/profile', { deviceAuthUuids: [uuid], purposes });
  const device = await connectDevice(registration);
  for (const [n, val] of values.entries())
    await device.publish('up/measurements', { sId: '0x01', val, ts: ts + n });
  await device.end();
}

beforeAll(async () => {
  house = await openHouse(ends);
  const critical = tooWarm({ severity: 'critical' }, { name: 'far too warm' });
  await addRoom('Berlin 1', ['berlin', 'cold'], [tooWarm()]);
  await addRoom('Munich 7', ['munich', 'cold'], [critical], [9], hourAgoTs);
  await addRoom('berlin 2', ['berlin'], [tooWarm({ severity: 'info' }, { name: undefined })]);
  await addRoom('Hamburg', [], [tooWarm()]);
});
afterAll(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

const list = (query: string) => house.app.call<Listed>('GET', `/v2/alarms?${query}`);
const names = async (query: string) =>
  (await list(query)).alarms.map(({ deviceName }) => deviceName);
const all = ['Hamburg', 'berlin 2', 'Munich 7', 'Berlin 1'];

it('finds alarms by a part of the name of device or event, by event, severity and several labels', async () => {
  expect(await names('state=open')).toEqual(all);
  expect(await names('search=BERLIN')).toEqual(['berlin 2', 'Berlin 1']);
  expect(await names('search=far')).toEqual(['Munich 7']);
  expect(await names('search=%25')).toEqual([]);
  expect(await names('event=too%20warm')).toEqual(['Hamburg', 'Berlin 1']);
  expect(await names('event=1/1/1')).toEqual(['berlin 2']);
  expect(await names('severity=critical')).toEqual(['Munich 7']);
  expect(await names('severity=warning&label=cold')).toEqual(['Berlin 1']);
  expect(await names('label=berlin')).toEqual(['berlin 2', 'Berlin 1']);
  expect(await names('label=berlin&label=cold')).toEqual(['Berlin 1']);
  expect(await names('label=berlin&label=munich&state=open')).toEqual([]);
  await expect(list('state=open&state=closed')).rejects.toThrow('is given more than once');
});

it('lists them by age, severity or name, page by page', async () => {
  const orders = {
    oldest: ['Munich 7', 'Berlin 1', 'berlin 2', 'Hamburg'],
    severity: ['Munich 7', 'Hamburg', 'Berlin 1', 'berlin 2'],
    name: ['Berlin 1', 'berlin 2', 'Hamburg', 'Munich 7'],
  };
  for (const [sort, expected] of Object.entries(orders)) {
    const found: string[] = [];
    let path: string | undefined = `/v2/alarms?limit=1&sort=${sort}`;
    while (path !== undefined) {
      const page = await house.app.page(path);
      found.push(...(page.body as Listed).alarms.map(({ deviceName }) => deviceName));
      path = page.next;
    }
    expect(found).toEqual(expected);
  }
  const { next = '' } = await house.app.page('/v2/alarms?limit=1&sort=name');
  await expect(house.app.page(next.replace('sort=name', 'sort=severity'))).rejects.toThrow(
    'is not a cursor of this order',
  );
});

it('counts what matches, however much of it is listed, and groups it by event or label', async () => {
  expect(await list('counts=true&limit=1')).toMatchObject({ total: 4, alarms: [{}] });
  expect((await list('limit=1')).total).toBeUndefined();
  expect((await list('counts=true&search=berlin&state=closed')).total).toBe(0);
  const { groups: events } = await list('group=event&state=open');
  expect(events).toMatchObject([
    { name: 'far too warm', total: 1, severity: 'critical', beganTs: hourAgoTs },
    { name: 'too warm', total: 2, severity: 'warning' },
    { name: '1/1/1', total: 1, severity: 'info' },
  ]);
  const { groups: labels } = await list('group=label');
  expect(labels?.map(({ name, total, severity }) => [name, total, severity])).toEqual([
    ['cold', 2, 'critical'],
    ['munich', 1, 'critical'],
    ['berlin', 2, 'warning'],
    ['', 1, 'warning'],
  ]);
});

it('lists first what went furthest beyond its limit, however long ago, above or below', async () => {
  const below = tooWarm({}, { causes: [{ sId: '0x01', thresholds: { isLt: -18 } }] });
  const silent = tooWarm(
    {},
    { causes: [{ sId: '0x01', threshold: { noneForMs: 1_000 }, thresholds: {} }] },
  );
  const rooms = [
    ['a bit', [tooWarm()], [9]],
    ['far, and back nearly', [tooWarm()], [12, 8.5]],
    ['below', [below], [-20, -21]],
    ['furthest, and over', [tooWarm()], [20, 4]],
  ] as const;
  for (const [name, purposes, values] of rooms)
    await addRoom(name, ['worst'], [...purposes], values);
  await addRoom('silent', ['worst'], [silent], [1]);
  await expect.poll(async () => (await list('label=worst')).alarms.length).toBe(5);
  const expected = ['furthest, and over', 'far, and back nearly', 'below', 'a bit', 'silent'];
  await expect.poll(() => names('label=worst&sort=worst')).toEqual(expected);
  const found: string[] = [];
  let path: string | undefined = '/v2/alarms?limit=2&label=worst&sort=worst';
  while (path !== undefined) {
    const page = await house.app.page(path);
    found.push(...(page.body as Listed).alarms.map(({ deviceName }) => deviceName));
    path = page.next;
  }
  expect(found).toEqual(expected);
});

it.each([
  ['severity', { id: 1, key: 3_000_000_000 }],
  ['severity', { id: 1, key: 'Berlin 1' }],
  ['name', { id: 1, key: '\u0000' }],
  ['name', { id: 1, key: 1 }],
  ['worst', { id: 1, key: 'Berlin 1' }],
  ['oldest', { id: 1, key: 0.5 }],
])('a cursor of the order %s that it did not give is refused: %j', async (sort, cursor) => {
  const text = Buffer.from(JSON.stringify(cursor)).toString('base64url');
  await expect(list(`sort=${sort}&cursor=${text}`)).rejects.toThrow('400');
});

it('an open alarm is found and counted, however many have closed since', async () => {
  const columns = `account_id, device_id, device_uuid, p_id, pu_id, st_id, ev_id, tells, is_reported, is_global,
                   since_at, last_firing_at, event, actions, s_ids`;
  await runOn(house.service.databaseUrl, (client) =>
    client.query(
      `insert into ${schema}.alarm (${columns}, closed_at)
       select ${columns}, now() from ${schema}.alarm, generate_series(1, 12501)`,
    ),
  );
  expect((await list('counts=true&limit=1')).total).toBe(8 + 50_000);
  expect((await names('sort=oldest&limit=1'))[0]).toBe('Munich 7');
});
