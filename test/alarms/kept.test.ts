import { afterEach, expect, it } from 'vitest';
import { purgeAll } from '../history/purge-all.ts';
import { forgetAlarms } from '../../src/alarms/store.ts';
import { pruneHistory } from '../../src/history/retention.ts';
import { readEvents } from '../events/sse.ts';
import { nextOf } from '../events/app.ts';
import { testDatabase } from '../support/database.ts';
import { addDevice, listAlarms, openHouse, send, tooWarm } from './house.ts';

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

const dayMs = 86_400_000;

async function openWithDatabase() {
  const database = await testDatabase();
  ends.push(database.drop);
  const house = await openHouse(ends, { DATABASE_URL: database.url });
  const { accountAuthToken: token } = await house.app.call<{ accountAuthToken: string }>(
    'POST',
    '/v2/accounts/login',
    { email: house.app.email, password: 'correct horse battery' },
  );
  return { db: database.db, house, token };
}

it('are listed by state, device and label, page by page', async () => {
  const { house, token } = await openWithDatabase();
  const [cellar, attic] = [
    await addDevice(house, [tooWarm()]),
    await addDevice(house, [tooWarm()]),
  ];
  await house.app.call('PUT', `/v2/devices/${cellar.uuid}/labels`, { labels: ['cellar'] });
  for (const val of [9, 5, 9]) await send(cellar, val);
  await send(attic, 9);
  const ids = async (query: string) =>
    (await listAlarms(house, query)).map(({ alarmId }) => alarmId);
  const [newest = 0, second = 0, oldest = 0] = await ids('');
  expect(newest).toBeGreaterThan(second);
  expect(await ids(`?device=${cellar.uuid}`)).toEqual([second, oldest]);
  expect(await ids('?label=cellar')).toEqual([second, oldest]);
  expect(await ids('?label=attic')).toEqual([]);
  expect(await ids('?state=closed')).toEqual([oldest]);
  expect(await ids(`?state=open&device=${attic.uuid}`)).toEqual([newest]);
  const paged: number[] = [];
  for (let path: string | null = '/v2/alarms?limit=1'; path;) {
    const response: Response = await fetch(house.service.url + path, {
      headers: { authorization: `Bearer ${token}` },
    });
    const { alarms } = (await response.json()) as { alarms: { alarmId: number }[] };
    paged.push(...alarms.map(({ alarmId }) => alarmId));
    path = nextOf(response);
  }
  expect(paged).toEqual([newest, second, oldest]);
});

it('what `keepMs` keeps open closes when its time is over', async () => {
  const { house } = await openWithDatabase();
  const freezer = await addDevice(house, [tooWarm({ keepMs: 1_500 })]);
  await send(freezer, 9);
  await send(freezer, 5);
  const [ending] = await listAlarms(house, '?state=open');
  expect(ending?.endsTs).toBeGreaterThan(0);
  await expect
    .poll(() => listAlarms(house), { timeout: 60_000 })
    .toMatchObject([{ state: 'closed', closedBy: 'cleared', closedTs: ending?.endsTs }]);
});

it('closed ones are deleted with the events of their time, open ones stay', async () => {
  const { db, house } = await openWithDatabase();
  const freezer = await addDevice(house, [tooWarm()]);
  for (const val of [9, 5, 9]) await send(freezer, val);
  expect(await forgetAlarms(db, Date.now() - dayMs)).toBe(0);
  expect(await forgetAlarms(db, Date.now() + dayMs)).toBe(1);
  expect(await listAlarms(house)).toMatchObject([{ state: 'open' }]);
});

it('a reader who was away for more than a day gets each changed alarm once, in its current state', async () => {
  const { db, house, token } = await openWithDatabase();
  const { url } = house.service;
  const freezer = await addDevice(house, [tooWarm()]);
  await send(freezer, 9);
  await send(freezer, 5);
  const before = await readEvents(`${url}/v2/events/stream`, token);
  const [, ...place] = before.lastId().split('.');
  before.close();
  await send(freezer, 9);
  await send(freezer, 10);
  await pruneHistory(db, {
    retention: { eventsDays: 365, measurementsDays: 90 },
    nowTs: Date.now() + 2 * dayMs,
  });
  const id = [Date.now() - 2 * dayMs, ...place].join('.');
  const after = await readEvents(`${url}/v2/events/stream`, token, id);
  ends.push(async () => after.close());
  const changes = () => after.messages.filter(({ event }) => event === 'alarm');
  await expect.poll(() => changes().length, { timeout: 60_000 }).toBeGreaterThan(0);
  expect(changes().map(({ data }) => data)).toMatchObject([
    { change: 'fired', alarm: { state: 'open', firings: 2 } },
  ]);
});

it('a removed device leaves only the message that its open alarms are gone', async () => {
  const { db, house } = await openWithDatabase();
  const freezer = await addDevice(house, [tooWarm()]);
  for (const val of [9, 5, 9]) await send(freezer, val);
  const { rows: devices } = await db.query<{ id: number; account_id: number }>(
    'select id, account_id from device',
  );
  await house.app.call('DELETE', `/v2/devices/${freezer.uuid}`);
  for (const { id, account_id: accountId } of devices)
    await purgeAll(db, { accountId, deviceIds: [id] });
  const left = async () => {
    const { rows } = await db.query(
      `select body ->> 'change' as change, (select count(*) from alarm) as alarms from alarm_change`,
    );
    return rows;
  };
  await expect.poll(left, { timeout: 60_000 }).toEqual([{ change: 'removed', alarms: 0 }]);
});
