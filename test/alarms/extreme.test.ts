import { afterEach, expect, it } from 'vitest';
import { noteLate } from '../../src/alarms/values.ts';
import { insertDevice } from '../ingest/harness.ts';
import { testDatabase } from '../support/database.ts';
import { runOn, schema } from '../support/template.ts';
import { addDevice, listAlarms, openHouse, send, tooWarm, type House } from './house.ts';

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

const minute = 60_000;

/** Whether the timer has nothing left to look for. */
const isKept = ({ service }: House) =>
  runOn(service.databaseUrl, async (client) => {
    const due = `select from ${schema}.alarm where extreme_due_at is not null`;
    return (await client.query(due)).rowCount === 0;
  });

it('says what an alarm required, what opened it, and how far it went, also after it closed and values came late', async () => {
  const house = await openHouse(ends);
  const freezer = await addDevice(house, [tooWarm()]);
  const from = Date.now() - 30 * minute;
  const at = (n: number) => from + n * minute;
  for (const [n, val] of [9, 9.5, 12.25, 9].entries()) await send(freezer, val, at(n));
  const kept = {
    conditions: [{ sId: '0x01', name: null, unit: null, threshold: {}, thresholds: { isGt: 8 } }],
    firedWith: [{ sId: '0x01', val: 9, ts: at(0) }],
  };
  const peak = (val: number, ts: number) => [{ sId: '0x01', val, ts }];
  expect(await listAlarms(house)).toMatchObject([
    { state: 'open', ...kept, extreme: peak(12.25, at(2)) },
  ]);
  await send(freezer, 5, at(5));
  await send(freezer, -20, at(6));
  await expect.poll(() => isKept(house)).toBe(true);
  expect(await listAlarms(house)).toMatchObject([
    {
      state: 'closed',
      ...kept,
      beganTs: at(0),
      overTs: at(5),
      values: peak(-20, at(6)),
      extreme: peak(12.25, at(2)),
    },
  ]);
  await send(freezer, 13, at(4));
  await send(freezer, 99, from - minute);
  await expect.poll(() => isKept(house)).toBe(true);
  expect(await listAlarms(house)).toMatchObject([{ extreme: peak(13, at(4)) }]);
});

it('also looks again after an import that falls inside, and in an alarm that a person closed', async () => {
  const house = await openHouse(ends);
  const { app, service } = house;
  const [warm, closed] = [await addDevice(house, [tooWarm()]), await addDevice(house, [tooWarm()])];
  const from = Date.now() - 30 * minute;
  for (const device of [warm, closed]) await send(device, 9, from);
  await send(warm, 5, from + 5 * minute);
  await send(closed, 10, from + 5 * minute);
  const [{ alarmId } = { alarmId: 0 }] = await listAlarms(house, `?device=${closed.uuid}`);
  await app.call('POST', `/v2/alarms/${alarmId}/close`, { force: true });
  const extremes = async () =>
    (await listAlarms(house)).map(({ extreme }) => extreme.map(({ val }) => val));
  await expect.poll(() => isKept(house)).toBe(true);
  expect(await extremes()).toEqual([[10], [9]]);
  const credentials = { email: app.email, password: 'correct horse battery' };
  const login = await app.call<{ accountAuthToken: string }>(
    'POST',
    '/v2/accounts/login',
    credentials,
  );
  const lines = [warm, closed].map(({ uuid }) =>
    JSON.stringify({ deviceAuthUuid: uuid, sId: '0x01', val: 20, ts: from + minute }),
  );
  const answer = await fetch(`${service.url}/v2/measurements/import`, {
    method: 'POST',
    headers: {
      Authorization: `Bearer ${login.accountAuthToken}`,
      'Content-Type': 'application/x-ndjson',
    },
    body: `${lines.join('\n')}\n`,
  });
  expect(await answer.json()).toMatchObject({ stored: 2 });
  await expect.poll(extremes).toEqual([[20], [20]]);
  await send(closed, 25, from + 2 * minute);
  await expect.poll(extremes).toEqual([[25], [20]]);
});

it('keeps the least value below a limit, and none where a cause has both limits or compares a difference', async () => {
  const house = await openHouse(ends);
  const cause = (thresholds: object, threshold?: object) => ({
    causes: [{ sId: '0x01', thresholds, threshold }],
  });
  const below = await addDevice(house, [tooWarm({}, cause({ isLt: 0 }))]);
  const between = await addDevice(house, [tooWarm({}, cause({ isLt: 0, isGt: -9 }))]);
  const other = await addDevice(house, [tooWarm({}, cause({ isLt: 0 }, { relative: true }))]);
  const not = await addDevice(house, [tooWarm({}, cause({ isGt: 0 }, { negate: true }))]);
  for (const device of [below, between, other, not])
    for (const val of [-1, -2, -3]) await send(device, val);
  const extremes = (await listAlarms(house))
    .toReversed()
    .map(({ extreme }) => extreme.map(({ val }) => val));
  expect(extremes).toEqual([[-3], [], [], [-3]]);
});

it('a late value has few alarms looked at again, however many it falls into', async () => {
  const database = await testDatabase('postgresql');
  ends.push(() => database.drop());
  const { db } = database;
  const device = await insertDevice(db);
  await db.query(
    `insert into alarm (account_id, device_id, device_uuid, p_id, pu_id, st_id, ev_id, tells, is_reported, is_global,
                        since_at, last_firing_at, event, actions, s_ids, began_at, over_at, closed_at)
     select $1, $2, $3, '', 1, 1, 1, 'alarm', false, false, at, at, '{}', '{}', '{0x1}', at, at + interval '1 min', now()
       from (select now() - n * interval '1 min' as at from generate_series(1, 500) n) a`,
    [device.accountId, device.deviceId, device.uuid],
  );
  const fromTs = Date.now() - 1_000 * minute;
  await noteLate(db, [{ deviceId: device.deviceId, sId: '0x1', fromTs, toTs: Date.now() }]);
  const due = `select from alarm where extreme_due_at is not null and began_at > now() - interval '201 min'`;
  expect((await db.query(due)).rows).toHaveLength(100);
  expect((await db.query('select from alarm where extreme_due_at is not null')).rows).toHaveLength(
    100,
  );
});
