import { afterAll, beforeAll, expect, test } from 'vitest';
import { configuration, purpose, startApp, type App } from './app.ts';

type Device = { uuid: string; name: string; serial: string; labels: string[]; token: string };
type List = { devices: Device[]; counts?: Record<string, number> };

let app: App;
beforeAll(async () => void (app = await startApp()));
afterAll(() => app?.close());

async function addDevice(token: string, name: string, serial = 's-1'): Promise<string> {
  const body = { ...configuration, device: { ...configuration.device, name, serial } };
  const answer = await app.call('POST', '/v2/devices', { token, body });
  return String(answer.body['deviceAuthUuid']);
}

/** Sorted by name. */
async function find(token: string, query: string): Promise<List> {
  const answer = await app.call('GET', `/v2/devices?sort=name&${query}`, { token });
  expect([answer.status, answer.body]).toEqual([200, expect.anything()]);
  return answer.body as unknown as List;
}

const namesOf = async (token: string, query: string) =>
  (await find(token, query)).devices.map(({ name }) => name);

/** Sets presence, state or labels of a device. */
async function set(uuid: string, sql: string, ...values: unknown[]): Promise<void> {
  await app.db.query(sql.replace('DEVICE', '(select id from device where uuid = $1)'), [
    uuid,
    ...values,
  ]);
}

const isSeen = (uuid: string, connected: boolean, ts: number) =>
  set(
    uuid,
    `insert into presence (device_id, connector_id, connected, last_seen_at)
     values (DEVICE, 1, $2, ms_to_timestamp($3))`,
    connected,
    ts,
  );

test('is searched by a part of the name or the serial number, and by the start of the uuid', async () => {
  const token = await app.account();
  const uuid = await addDevice(token, 'Freezer North', 'AB-100');
  await addDevice(token, 'Freezer South', 'AB-200');
  await addDevice(token, '100 % wine', 'x_1');
  expect(await namesOf(token, 'search=freezer')).toEqual(['Freezer North', 'Freezer South']);
  expect(await namesOf(token, 'search=ab-2')).toEqual(['Freezer South']);
  expect(await namesOf(token, `search=${uuid.slice(0, 13).toUpperCase()}`)).toEqual([
    'Freezer North',
  ]);
  expect(await namesOf(token, 'search=100%20%25')).toEqual(['100 % wine']);
  expect(await namesOf(token, 'search=_')).toEqual(['100 % wine']);
  expect((await find(token, 'search=x_1')).devices[0]).toMatchObject({ serial: 'x_1' });
});

test('is filtered by label, presence, state and profile, all at once', async () => {
  const token = await app.account();
  const [a, b, c] = [
    await addDevice(token, 'a'),
    await addDevice(token, 'b'),
    await addDevice(token, 'c'),
  ];
  await isSeen(a, true, 2_000);
  await isSeen(b, false, 1_000);
  await set(a, `update device set labels = $2 where id = DEVICE`, ['cellar', 'cold']);
  await set(b, 'update device_state set pu_id = 7, st_id = -2 where device_id = DEVICE');
  await app.call('POST', '/v2/devices/profile', {
    token,
    body: { deviceAuthUuids: [c], purposes: [purpose(1)] },
  });
  expect(await namesOf(token, 'label=cellar')).toEqual(['a']);
  expect(await namesOf(token, 'label=cellar&label=cold')).toEqual(['a']);
  expect(await namesOf(token, 'label=cellar&label=attic')).toEqual([]);
  expect(await namesOf(token, 'online=true')).toEqual(['a']);
  expect(await namesOf(token, 'online=false')).toEqual(['b', 'c']);
  expect(await namesOf(token, 'state=7:-2')).toEqual(['b']);
  expect(await namesOf(token, 'profile=pending')).toEqual(['c']);
  expect(await namesOf(token, 'profile=none')).toEqual(['a', 'b']);
  expect(await namesOf(token, 'profile=current')).toEqual([]);
  expect(await namesOf(token, 'profile=none&online=false')).toEqual(['b']);
  const { counts } = await find(token, 'counts=true&label=cellar');
  expect(counts).toEqual({
    all: 3,
    within: 1,
    intermittent: 0,
    matching: 1,
    online: 1,
    offline: 0,
    alarm: 0,
    refused: 0,
    muted: 0,
    pendingProfile: 0,
  });
  // Which kind is asked for changes no count but `matching`.
  const of = async (query: string) => (await find(token, `counts=true&${query}`)).counts;
  const kinds = { all: 3, within: 3, online: 1, offline: 2, pendingProfile: 1 };
  expect(await of('online=true')).toMatchObject({ ...kinds, matching: 1 });
  expect(await of('presence=offline&profile=none')).toMatchObject({ ...kinds, matching: 1 });
  expect(await of('state=7:-2&profile=pending')).toMatchObject({
    all: 3,
    within: 1,
    online: 0,
    offline: 1,
    pendingProfile: 0,
    matching: 0,
  });
});

/** Gives the device an alarm of this event: open, acknowledged or closed. */
const hasAlarm = (uuid: string, evId: number, sinceTs: number, members = '{}') =>
  set(
    uuid,
    `insert into alarm
       (account_id, device_id, device_uuid, p_id, pu_id, st_id, ev_id, tells, is_reported, is_global,
        since_at, last_firing_at, event, actions, s_ids, acknowledged_at, closed_at)
     select d.account_id, d.id, d.uuid, 'p', 1, 1, $2, 'alarm', false, false, ms_to_timestamp($3),
            ms_to_timestamp($3), '{}', '{}', '{}', m.acknowledged_at, m.closed_at
       from device d, json_to_record($4) as m (acknowledged_at timestamptz, closed_at timestamptz)
      where d.uuid = $1`,
    evId,
    sinceTs,
    members,
  );

test('says which devices have an alarm, how many, and since when', async () => {
  const token = await app.account();
  const other = await addDevice(await app.account(), 'of somebody else');
  const [a, b, c] = [
    await addDevice(token, 'a'),
    await addDevice(token, 'b'),
    await addDevice(token, 'c'),
  ];
  await addDevice(token, 'd');
  await hasAlarm(other, 1, 500);
  await hasAlarm(a, 1, 3_000);
  await hasAlarm(a, 2, 2_000);
  await hasAlarm(a, 3, 1_000, '{ "closed_at": "2026-11-23" }');
  await hasAlarm(b, 1, 4_000, '{ "acknowledged_at": "2026-11-23" }');
  // What the alarm is about began before it opened.
  await set(
    a,
    `update alarm set began_at = ms_to_timestamp(1500), event_name = 'too warm'
      where device_id = DEVICE and ev_id = 1`,
  );
  await set(
    a,
    `update alarm set severity = 'critical', event_name = 'far too warm'
      where device_id = DEVICE and ev_id = 2`,
  );
  await hasAlarm(c, 1, 5_000, '{ "closed_at": "2026-11-23" }');
  const { devices, counts } = await find(token, 'alarm=open&counts=true');
  expect(devices).toMatchObject([
    { name: 'a', openAlarms: 2, alarmSinceTs: 1_500, alarmName: 'far too warm' },
    { name: 'b', openAlarms: 1, alarmSinceTs: 4_000 },
  ]);
  expect(counts).toMatchObject({ all: 4, alarm: 2 });
  const quiet = (await find(token, 'limit=10')).devices.find(({ name }) => name === 'c');
  expect(quiet).toMatchObject({ name: 'c', openAlarms: 0 });
  expect(quiet).not.toHaveProperty('alarmSinceTs');
});

test('says which devices are muted, until when and why', async () => {
  const token = await app.account();
  const [a, b, c] = [
    await addDevice(token, 'a'),
    await addDevice(token, 'b'),
    await addDevice(token, 'c'),
  ];
  const untilTs = Date.now() + 3_600_000;
  const mute = (uuid: string, ts: number, reason: string | null) =>
    set(
      uuid,
      `insert into device_mute (device_id, until_at, reason, muted_at, muted_by)
       values (DEVICE, ms_to_timestamp($2), $3, now(), 'somebody')`,
      ts,
      reason,
    );
  await mute(a, untilTs, 'fan is replaced');
  await mute(b, untilTs, null);
  await mute(c, Date.now(), null);
  const { devices, counts } = await find(token, 'muted=true&counts=true');
  expect(devices).toMatchObject([
    { name: 'a', mutedUntilTs: untilTs, mutedReason: 'fan is replaced' },
    { name: 'b', mutedUntilTs: untilTs },
  ]);
  expect(devices[1]).not.toHaveProperty('mutedReason');
  expect(counts).toMatchObject({ all: 3, matching: 2, muted: 2 });
  // Its mute has ended.
  const [heard, ...others] = (await find(token, 'muted=false')).devices;
  expect([heard?.name, others]).toEqual(['c', []]);
  expect(heard).not.toHaveProperty('mutedUntilTs');
  const one = await app.call('GET', `/v2/devices/${a}`, { token });
  expect(one.body).toMatchObject({ device: { mutedUntilTs: untilTs } });
});

test.each([
  ['name', ['Alpha', 'beta', 'beta', 'Gamma', 'never']],
  ['lastSeenTs', ['never', 'beta', 'Alpha', 'Gamma', 'beta']],
  ['registeredTs', ['Gamma', 'beta', 'Alpha', 'beta', 'never']],
])('is sorted by %s, page by page, in both directions', async (sort, expected) => {
  const token = await app.account();
  const seenTs = [3_000, 1_000, 2_000, 4_000];
  for (const [n, name] of ['Gamma', 'beta', 'Alpha', 'beta'].entries())
    await isSeen(await addDevice(token, name), true, seenTs[n] ?? 0);
  await addDevice(token, 'never');
  const walk = async (query: string) => {
    const uuids: string[] = [];
    const names: string[] = [];
    let path: string | undefined = `/v2/devices?limit=2&${query}`;
    while (path !== undefined) {
      const answer = await app.call('GET', path, { token });
      const { devices } = answer.body as unknown as List;
      names.push(...devices.map(({ name }) => name));
      uuids.push(...devices.map(({ uuid }) => uuid));
      path = /<([^>]+)>; rel="next"/.exec(answer.headers.get('link') ?? '')?.[1];
    }
    expect(new Set(uuids).size).toBe(5);
    return names;
  };
  expect(await walk(`sort=${sort}`)).toEqual(expected);
  expect(await walk(`sort=-${sort}`)).toEqual(expected.toReversed());
});

test.each([
  'limit=0',
  'online=yes',
  'muted=1',
  'alarm=closed',
  'state=1',
  'profile=old',
  'sort=age',
  'sort=value:',
  'cursor=here',
])('refuses %s, and names the parameter', async (query) => {
  const answer = await app.call('GET', `/v2/devices?${query}`, { token: await app.account() });
  const [name] = query.split('=');
  expect([answer.status, answer.body['errors']]).toMatchObject([400, [{ path: name }]]);
});

test('is all devices, as before, if no known parameter is given', async () => {
  const token = await app.account();
  for (const name of ['b', 'a']) await addDevice(token, name);
  const answer = await app.call('GET', '/v2/devices?page=2', { token });
  const { devices } = answer.body as unknown as List;
  expect(devices.map(({ name }) => name)).toEqual(['b', 'a']);
  expect(devices[0]).not.toHaveProperty('serial');
});
