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
    failed: [{ deviceAuthUuid: other, deviceName: expect.any(String), reason: 'changed' }],
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
  expect(restored['failed']).toMatchObject([{ deviceAuthUuid: later, reason: 'changed' }]);
  expect(restored['failed']).toHaveLength(1);
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
