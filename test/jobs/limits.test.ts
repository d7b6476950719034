import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { ask } from '../idempotency/repeat.ts';
import { thresholdPurpose } from '../journeys/app.ts';
import { type JobWorld, startJobWorld } from './world.ts';

let world: JobWorld;
beforeAll(async () => void (world = await startJobWorld()));
afterAll(() => world?.close());
beforeEach(() => world.openAccount());

async function install(deviceAuthUuids: string[], isGt: number): Promise<string> {
  const body = { deviceAuthUuids, purposes: [{ ...thresholdPurpose(1, isGt), name: 'warm' }] };
  const { token } = world;
  return String((await ask(world.url, { path: '/v2/devices/profile', token, body })).body['pId']);
}

/** The devices take what is pending, as their answers would make them. */
const accept = () =>
  world.db
    .query(
      `with gone as (
       update device_profile c set state = 'replaced'
        where c.state = 'current'
          and exists (select from device_profile w where w.device_id = c.device_id and w.state = 'pending')
       returning c.device_id)
     select from gone`,
    )
    .then(() =>
      world.db.query(`update device_profile set state = 'current' where state = 'pending'`),
    );

/** Of the newest profile, pending or current: its limit, and its number. */
async function limitsOf(uuids: string[]) {
  const { rows } = await world.db.query<{ isGt: number; pId: string }>(
    `select distinct on (d.id) p.id as "pId",
            (c.purposes#>>'{0,states,0,events,0,causes,0,thresholds,isGt}')::float8 as "isGt"
       from device d
       join device_profile dp on dp.device_id = d.id and dp.state in ('pending', 'sent', 'current')
       join profile p on p.id = dp.profile_id
       join profile_content c on c.id = p.content_id
      where d.uuid = any($1::uuid[])
      order by d.id, dp.state = 'current'`,
    [uuids],
  );
  return rows;
}

const to = (isGt: number, more: object = {}) => ({
  changes: [{ puId: 1, stId: 1, evId: 5, cause: 0, thresholds: { isGt }, ...more }],
});

test('other limits reach the devices that have the purposes, once each, and are taken back', async () => {
  const uuids = await world.register(25);
  const [other = '', later = '', ...same] = uuids;
  const ifPId = await install([later, ...same.slice(0, 12)], 20);
  // Another profile with the same purposes counts as the same.
  await install(same.slice(12), 20);
  await accept();
  await install([other], 4);
  const started = await world.act({ action: 'limits', ifPId, ...to(8), filter: {} });
  const job = await world.finished(started);
  expect(job).toMatchObject({
    action: 'limits',
    done: 25,
    of: 25,
    failed: [],
    kept: 1,
    keptDevices: [{ deviceAuthUuid: other, deviceName: expect.any(String), reason: 'changed' }],
  });
  expect(job).not.toHaveProperty('labels');
  const changed = await limitsOf([later, ...same]);
  expect(changed).toEqual(changed.map(() => ({ isGt: 8, pId: job['pId'] })));
  expect(changed).toHaveLength(24);
  expect(await limitsOf([other])).toMatchObject([{ isGt: 4 }]);
  // One content for all, although they were installed piece by piece.
  const { rows } = await world.db.query(
    `select from profile_content c join profile p on p.content_id = c.id where p.id = $1`,
    [job['pId']],
  );
  expect(rows).toHaveLength(1);
  await accept();
  // The same purposes from somebody else since then: that is not taken back.
  await install([later, other], 8);
  const back = await world.act({ action: 'restore', jobId: started.body['jobId'] });
  const restored = await world.finished(back);
  // What the job left alone is left alone.
  expect(restored['failed']).toEqual([]);
  expect(restored['keptDevices']).toMatchObject([{ deviceAuthUuid: later, reason: 'changed' }]);
  expect(restored['keptDevices']).toHaveLength(1);
  const isGts = async (of: string[]) => new Set((await limitsOf(of)).map(({ isGt }) => isGt));
  expect(await isGts(same)).toEqual(new Set([20]));
  expect(await isGts([other, later])).toEqual(new Set([8]));
});

test('limits that do not fit the profile are refused by name, and nothing begins', async () => {
  const uuids = await world.register(1);
  const ifPId = await install(uuids, 20);
  const refused = async (body: object) => {
    const answer = await world.act({ action: 'limits', ifPId, deviceAuthUuids: uuids, ...body });
    return [answer.status, answer.body['errors']];
  };
  const problem = (path: string, message: string) => [
    400,
    [expect.objectContaining({ path, message: expect.stringContaining(message) })],
  ];
  expect(await refused(to(8, { evId: 6 }))).toEqual(problem('/changes/0', 'no such cause'));
  expect(await refused(to(8, { thresholds: { isLt: 3 } }))).toEqual(
    problem('/changes/0/thresholds/isLt', 'no such number'),
  );
  expect(await refused({})).toEqual(problem('/changes', 'is required'));
  expect((await refused({ ...to(8), ifPId: crypto.randomUUID() }))[0]).toBe(404);
  const { body } = await world.get('/v2/jobs');
  expect(body['jobs']).toEqual([]);
  const label = await world.act({ action: 'label', labels: ['a'], filter: {} });
  await world.finished(label);
  // A job that changed no limits has none to take back.
  expect((await world.act({ action: 'restore', jobId: label.body['jobId'] })).status).toBe(404);
});

test('a profile that the quota has no room for is refused, and nothing begins', async () => {
  const uuids = await world.register(2);
  const ifPId = await install(uuids, 20);
  await world.db.query(`update account_usage set profile_bytes = 1000000000000`);
  const answer = await world.act({ action: 'limits', ifPId, ...to(8), deviceAuthUuids: uuids });
  expect([answer.status, answer.body['quota']]).toEqual([403, 'profileBytesTotal']);
  // What was pending is still pending.
  expect(await limitsOf(uuids)).toMatchObject([{ isGt: 20 }, { isGt: 20 }]);
});

test('a limit takes the name of its event with it, unless that has another name', async () => {
  const uuids = await world.register(1);
  const purposes = [withName('above 20 °C')];
  const { token } = world;
  const installed = await ask(world.url, {
    path: '/v2/devices/profile',
    token,
    body: { deviceAuthUuids: uuids, purposes },
  });
  const ifPId = String(installed.body['pId']);
  const renamed = (from: string) => ({
    action: 'limits',
    ifPId,
    ...to(8, { name: { from, to: 'above 8 °C' } }),
    deviceAuthUuids: uuids,
  });
  const refused = await world.act(renamed('above 21 °C'));
  expect([refused.status, refused.body['errors']]).toEqual([
    400,
    [expect.objectContaining({ path: '/changes/0/name/from' })],
  ]);
  const preview = await world.preview(renamed('above 20 °C'));
  const at = { puId: 1, stId: 1, evId: 5 };
  expect(preview.body).toMatchObject({
    of: 1,
    differences: [
      { ...at, cause: 0, sId: expect.any(String), limit: 'isGt', from: 20, to: 8 },
      { ...at, name: { from: 'above 20 °C', to: 'above 8 °C' } },
    ],
    devices: [{ deviceAuthUuid: uuids[0], outcome: 'install', profile: 0 }],
  });
  expect(await limitsOf(uuids)).toMatchObject([{ isGt: 20, pId: ifPId }]);
  await world.finished(await world.act(renamed('above 20 °C')));
  const path = `/v2/devices/${uuids[0]}/configuration`;
  expect((await world.get(path)).body['pendingProfile']).toMatchObject({
    purposes: [withName('above 8 °C', 8)],
  });
});

function withName(name: string, isGt = 20) {
  const purpose = structuredClone(thresholdPurpose(1, isGt));
  const [event] = purpose.states[0]?.events ?? [];
  if (event) Object.assign(event, { name });
  return { ...purpose, name: 'warm' };
}

test('a preview says which devices have another profile, none, or do not exist', async () => {
  const [mine = '', other = '', none = ''] = await world.register(3);
  const ifPId = await install([mine], 20);
  const otherPId = await install([other], 4);
  const strange = crypto.randomUUID();
  const deviceAuthUuids = [other, strange, mine, none];
  const { body } = await world.preview({ action: 'limits', ifPId, ...to(8), deviceAuthUuids });
  expect(body['profiles']).toEqual([
    { pId: otherPId, devices: 1 },
    { pId: ifPId, devices: 1 },
    { pId: null, devices: 1 },
  ]);
  expect(body['devices']).toEqual([
    { deviceAuthUuid: other, outcome: 'changed', profile: 0 },
    { deviceAuthUuid: strange, outcome: 'no-such-device', profile: -1 },
    { deviceAuthUuid: mine, outcome: 'install', profile: 1 },
    { deviceAuthUuid: none, outcome: 'changed', profile: 2 },
  ]);
  expect((await world.preview({ action: 'unmute', filter: {} })).status).toBe(400);
  expect((await world.get('/v2/jobs')).body['jobs']).toEqual([]);
});

test('several profiles and devices without one get their limits in one job, with one way back', async () => {
  const uuids = await world.register(7);
  const [a = '', b = '', c = '', d = '', none = '', other = '', emptied = ''] = uuids;
  const first = await install([a, b], 20);
  const second = await install([c, d], 30);
  await install([other], 4);
  await install([emptied], 5);
  await world.db.query(
    `with empty as (
       insert into profile_content (account_id, hash, bytes, purposes)
       select account_id, sha256('[]'), 2, '[]' from device where uuid = $1 returning id)
     update profile set content_id = empty.id from empty
      where profile.id = (select profile_id from device_profile w join device d on d.id = w.device_id
                           where d.uuid = $1)`,
    [emptied],
  );
  const purposes = [{ ...thresholdPurpose(1, 1), name: 'cold' }];
  const limits = [
    { ifPId: first, ...to(8, { severity: 'critical', threshold: { forMs: 60_000 } }) },
    { ifPId: second, ...to(9) },
    { ifPId: null, purposes },
  ];
  const body = { action: 'limits', limits, filter: {} };
  const { body: preview } = await world.preview(body);
  const at = { puId: 1, stId: 1, evId: 5 };
  expect(preview['differences']).toEqual([
    { ifPId: first, ...at, cause: 0, sId: '0x01', limit: 'forMs', from: 0, to: 60_000 },
    { ifPId: first, ...at, cause: 0, sId: '0x01', limit: 'isGt', from: 20, to: 8 },
    { ifPId: first, ...at, severity: { from: 'warning', to: 'critical' } },
    { ifPId: second, ...at, cause: 0, sId: '0x01', limit: 'isGt', from: 30, to: 9 },
  ]);
  const outcomes = preview['devices'] as { deviceAuthUuid: string; outcome: string }[];
  expect(outcomes.filter(({ outcome }) => outcome !== 'install')).toMatchObject([
    { deviceAuthUuid: other, outcome: 'changed' },
  ]);
  const started = await world.act(body);
  const job = await world.finished(started);
  expect(job).toMatchObject({ done: 7, failed: [] });
  expect(job['keptDevices']).toMatchObject([{ deviceAuthUuid: other, reason: 'changed' }]);
  expect(job['pIds']).toHaveLength(3);
  const isGts = async () => {
    const found = new Map<string, number>();
    for (const uuid of uuids) found.set(uuid, (await limitsOf([uuid]))[0]?.isGt ?? 0);
    return [...found.values()];
  };
  expect(await isGts()).toEqual([8, 8, 9, 9, 1, 4, 1]);
  const { rows } = await world.db.query<{ purpose: { states: object[] } }>(
    `select c.purposes -> 0 as purpose from profile_content c join profile p on p.content_id = c.id
      where p.id = (select w.profile_id from device_profile w join device d on d.id = w.device_id
                     where d.uuid = $1 order by w.state = 'pending' desc limit 1)`,
    [a],
  );
  expect(rows[0]?.purpose.states[0]).toMatchObject({
    events: [{ actions: { severity: 'critical' }, causes: [{ threshold: { forMs: 60_000 } }] }],
  });
  const back = await world.act({ action: 'restore', jobId: started.body['jobId'] });
  expect(await world.finished(back)).toMatchObject({ done: 6, of: 6, failed: [] });
  expect(await isGts()).toEqual([20, 20, 30, 30, 0, 4, 0]);
  expect(none).not.toBe('');
});

test('limits of several profiles that are wrong are refused by their place', async () => {
  const uuids = await world.register(2);
  const [one, two] = [await install(uuids.slice(0, 1), 20), await install(uuids.slice(1), 20)];
  const refused = async (...limits: object[]): Promise<[number, string[]]> => {
    const { status, body } = await world.act({ action: 'limits', limits, filter: {} });
    return [status, (body['errors'] as { path: string }[]).map(({ path }) => path)];
  };
  const good = { ifPId: one, ...to(8) };
  expect(await refused(good, good)).toEqual([400, ['/limits']]);
  expect(await refused(good, { ifPId: two, ...to(9) })).toEqual([400, ['/limits/1/ifPId']]);
  expect(await refused({ ifPId: one, ...to(8, { evId: 6 }) })).toEqual([
    400,
    ['/limits/0/changes/0'],
  ]);
  expect(await refused({ ifPId: one })).toEqual([400, ['/limits/0/changes']]);
  expect(await refused({ ifPId: null, ...to(8) })).toEqual([
    400,
    ['/limits/0/changes', '/limits/0/purposeUuids'],
  ]);
  const purposes = [thresholdPurpose(1, 1), thresholdPurpose(1, 2)];
  const [status, [path]] = await refused({ ifPId: null, purposes });
  expect([status, path]).toEqual([400, expect.stringMatching(/^\/limits\/0\/purposes\/1/)]);
});
