import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { removeUnusedProfiles } from '../../src/profiles/queries.ts';
import { ask } from '../idempotency/repeat.ts';
import { thresholdPurpose } from '../journeys/app.ts';
import { type JobWorld, startJobWorld } from './world.ts';

let world: JobWorld;
beforeAll(async () => void (world = await startJobWorld()));
afterAll(() => world?.close());
beforeEach(() => world.openAccount());

const purpose = (isGt: number, puId = 1) => ({
  ...thresholdPurpose(puId, isGt),
  name: `above ${isGt}`,
});

async function install(deviceAuthUuids: string[], ...purposes: object[]): Promise<string> {
  const { token } = world;
  const body = { deviceAuthUuids, purposes };
  return String((await ask(world.url, { path: '/v2/devices/profile', token, body })).body['pId']);
}

/** What each device runs, or will: names of purposes, and the profile. */
async function profilesOf(uuids: string[]) {
  const { rows } = await world.db.query<{ uuid: string; names: string[] | null; pId: string }>(
    `select distinct on (d.uuid) d.uuid, p.id as "pId",
            (select array_agg(one->>'name') from json_array_elements(c.purposes) one) as names
       from device d
       join device_profile dp on dp.device_id = d.id and dp.state in ('pending', 'sent', 'current')
       join profile p on p.id = dp.profile_id
       join profile_content c on c.id = p.content_id
      where d.uuid = any($1::uuid[])
      order by d.uuid, dp.state = 'current'`,
    [uuids],
  );
  const found = new Map(rows.map(({ uuid, ...row }) => [uuid, row]));
  return uuids.map((uuid) => found.get(uuid) ?? null);
}
const namesOf = async (uuids: string[]) => (await profilesOf(uuids)).map((one) => one?.names);

const removeUnused = () => removeUnusedProfiles(world.db, new AbortController().signal);

test('a profile reaches many devices, and each gets its own former one back, unless it got another since', async () => {
  const uuids = await world.register(25);
  const [older = '', other = '', none = '', same = '', late = '', ...rest] = uuids;
  await install([older], purpose(3), purpose(4, 2));
  await install([other, late, ...rest], purpose(5));
  const samePId = await install([same], purpose(9));
  const before = await namesOf(uuids);
  const body = { action: 'profile', purposes: [purpose(9)], filter: {}, reason: 'Summer' };

  const { body: preview } = await world.preview(body);
  expect(preview['of']).toBe(25);
  const named = (isGt: number, puId = 1) => ({ puId, name: `above ${isGt}` });
  expect(preview['profiles']).toEqual([
    {
      pId: expect.any(String),
      devices: 22,
      goes: [named(5)],
      comes: [named(9)],
      stays: [],
      changed: [],
    },
    {
      pId: expect.any(String),
      devices: 1,
      goes: [named(3), named(4, 2)],
      comes: [named(9)],
      stays: [],
      changed: [],
    },
    { pId: null, devices: 1, goes: [], comes: [named(9)], stays: [], changed: [] },
    { pId: samePId, devices: 1, goes: [], comes: [], stays: [named(9)], changed: [] },
  ]);
  const outcomes = preview['devices'] as { deviceAuthUuid: string; outcome: string }[];
  expect(outcomes.filter(({ outcome }) => outcome !== 'install')).toEqual([
    { deviceAuthUuid: same, outcome: 'unchanged', profile: 3 },
  ]);
  expect(await namesOf(uuids)).toEqual(before);
  // A purpose of the same name is the same one that says something else.
  const warmer = { ...purpose(12), name: 'above 5' };
  const { body: renewed } = await world.preview({ ...body, purposes: [warmer, purpose(7, 2)] });
  expect((renewed['profiles'] as object[])[0]).toMatchObject({
    goes: [],
    comes: [named(7, 2)],
    stays: [],
    changed: [{ ...named(5), before: purpose(5), after: warmer }],
  });
  const foreign = structuredClone(purpose(9));
  const [cause] = foreign.states[0]?.events[0]?.causes ?? [];
  if (cause) cause.sId = '0x99';
  const { body: warned } = await world.preview({ ...body, purposes: [foreign] });
  const path = '/purposes/0/states/0/events/0';
  expect(warned['warnings']).toMatchObject([{ path, code: 'no-device-has-sense' }]);

  const started = await world.act(body);
  const job = await world.finished(started);
  expect(job).toMatchObject({ action: 'profile', done: 25, failed: [], purposes: ['above 9'] });
  expect(job['keptDevices']).toMatchObject([{ deviceAuthUuid: same, reason: 'unchanged' }]);
  const changed = await profilesOf(uuids);
  expect(changed.map((one) => one?.names)).toEqual(uuids.map(() => ['above 9']));
  // One profile for all, except for the device that had these purposes already.
  expect(new Set(changed.map((one) => one?.pId))).toEqual(new Set([samePId, job['pId']]));
  const { body: trail } = await world.get('/v2/accounts/audit?kinds=bulk-action');
  expect((trail['entries'] as { details: object }[])[0]).toMatchObject({
    details: { action: 'profile', purposes: ['above 9'], pId: job['pId'], devices: 25 },
  });

  const makers = async () => {
    const { rows } = await world.db.query(
      `select distinct p.made_by as by, p.made_reason as reason
         from profile p join device_profile w on w.profile_id = p.id join device d on d.id = w.device_id
        where w.state = 'pending' and d.uuid = $1`,
      [older],
    );
    return rows;
  };
  expect(await makers()).toEqual([{ by: 'session', reason: 'Summer' }]);

  // What they had is kept for as long as the job can be undone.
  await removeUnused();
  await install([other, late], purpose(7));
  await install([late], purpose(9));
  const undone = await world.act({ action: 'restore', jobId: started.body['jobId'] });
  const back = await world.finished(undone);
  const kept = (back['keptDevices'] as { deviceAuthUuid: string }[]).toSorted((a, b) =>
    a.deviceAuthUuid < b.deviceAuthUuid ? -1 : 1,
  );
  expect(kept).toEqual(
    [other, late]
      .toSorted()
      .map((deviceAuthUuid) => expect.objectContaining({ deviceAuthUuid, reason: 'changed' })),
  );
  expect(await namesOf([older, other, none, same, late, ...rest])).toEqual([
    ['above 3', 'above 4'],
    ['above 7'],
    // Without purposes: a device that has got a profile forgets it only for another.
    null,
    ['above 9'],
    ['above 9'],
    ...rest.map(() => ['above 5']),
  ]);
  expect(await makers()).toEqual([{ by: 'session', reason: null }]);
  const restored = await profilesOf(rest);
  expect(new Set(restored.map((one) => one?.pId)).size).toBe(1);

  // Undoing that brings the new one back.
  const again = await world.act({ action: 'restore', jobId: undone.body['jobId'] });
  await world.finished(again);
  expect(await namesOf([older, none, ...rest])).toEqual(
    [older, none, ...rest].map(() => ['above 9']),
  );
});

test('the purposes that a job brings back are removed once it can no longer be undone', async () => {
  const uuids = await world.register(2);
  await install(uuids, purpose(5));
  const started = await world.act({ action: 'profile', purposes: [purpose(9)], filter: {} });
  await world.finished(started);
  const contents = async () => {
    const { rows } = await world.db.query<{ count: number }>(
      `select count(*)::integer as count from profile_content
        where account_id = (select account_id from job where uuid = $1)`,
      [started.body['jobId']],
    );
    return rows[0]?.count;
  };
  await removeUnused();
  expect(await contents()).toBe(2);
  await world.db.query(`update job set devices = '{}'`);
  await removeUnused();
  expect(await contents()).toBe(1);
  const late = await world.act({ action: 'restore', jobId: started.body['jobId'] });
  expect(late.status).toBe(404);
});

test('what a restore that began within the hour still brings back is kept until it has ended', async () => {
  const uuids = await world.register(2);
  await install(uuids, purpose(5));
  const started = await world.act({ action: 'profile', purposes: [purpose(9)], filter: {} });
  await world.finished(started);
  let undone: Awaited<ReturnType<JobWorld['act']>> | undefined;
  await world.whileNoneRuns(async () => {
    undone = await world.act({ action: 'restore', jobId: started.body['jobId'] });
    // The hour is over.
    await world.db.query(`update job set devices = '{}' where uuid = $1`, [started.body['jobId']]);
    await removeUnused();
  });
  if (undone) expect(await world.finished(undone)).toMatchObject({ done: 2, failed: [] });
  expect(await namesOf(uuids)).toEqual([['above 5'], ['above 5']]);
});

test('taking back counts the devices that the job changed', async () => {
  const uuids = await world.register(5);
  await install(uuids.slice(0, 2), purpose(9));
  const started = await world.act({ action: 'profile', purposes: [purpose(9)], filter: {} });
  expect(await world.finished(started)).toMatchObject({ done: 5 });
  const back = await world.act({ action: 'restore', jobId: started.body['jobId'] });
  expect(await world.finished(back)).toMatchObject({ done: 3, of: 3, failed: [] });
});

test('a preview says of many profiles and long names as much as fits', async () => {
  const uuids = await world.register(1000);
  // Each has a profile of its own.
  await world.db.query(
    `with own as (
       select id as device_id, account_id, row_number() over () as n from device where uuid = any($1::uuid[])
     ), content as (
       insert into profile_content (account_id, hash, bytes, purposes)
       select account_id, decode(md5(n::text), 'hex'), 60,
              json_build_array(json_build_object('puId', n, 'initStId', 1, 'states', '[]'::json))
         from own
       returning id, account_id
     ), made as (
       insert into profile (account_id, content_id) select account_id, id from content returning id
     )
     insert into device_profile (device_id, profile_id)
     select own.device_id, made.id
       from own join (select id, row_number() over () as n from made) made using (n)`,
    [uuids],
  );
  const purposes = Array.from({ length: 200 }, (_, n) => ({
    ...purpose(9, n + 1),
    name: `${n} ${'long '.repeat(35)}`,
  }));
  const { status, text, body } = await world.preview({ action: 'profile', purposes, filter: {} });
  expect(status, text).toBe(200);
  expect(body['of']).toBe(1000);
  const profiles = body['profiles'] as { comes?: { name: string }[] }[];
  expect(profiles).toHaveLength(1000);
  expect(profiles[0]?.comes).toHaveLength(200);
  expect(profiles[0]?.comes?.[0]?.name.length).toBeLessThanOrEqual(101);
  expect(profiles.at(-1)).not.toHaveProperty('comes');
  expect(text.length).toBeLessThan(2 * 1024 * 1024);
});

test('a device that has refused what a job installed still has its own, and nothing is brought back', async () => {
  const [uuid = ''] = await world.register(1);
  await install([uuid], purpose(5));
  await world.db.query(`update device_profile set state = 'current' where state = 'pending'`);
  const started = await world.act({ action: 'profile', purposes: [purpose(9)], filter: {} });
  await world.finished(started);
  await world.db.query(`update device_profile set state = 'rejected' where state = 'pending'`);
  const before = await profilesOf([uuid]);
  const back = await world.act({ action: 'restore', jobId: started.body['jobId'] });
  expect(await world.finished(back)).toMatchObject({ of: 0, failed: [] });
  expect(await profilesOf([uuid])).toEqual(before);
  expect(before).toMatchObject([{ names: ['above 5'] }]);
});

test('a device without a profile that gets one and loses it runs none', async () => {
  const [uuid = ''] = await world.register(1);
  const started = await world.act({ action: 'profile', purposes: [purpose(9)], filter: {} });
  await world.finished(started);
  const none = async () => {
    const { body } = await world.get('/v2/devices?profile=none');
    return (body['devices'] as unknown[]).length;
  };
  expect(await none()).toBe(0);
  await world.finished(await world.act({ action: 'restore', jobId: started.body['jobId'] }));
  const path = `/v2/devices/${uuid}/configuration`;
  expect((await world.get(path)).body['pendingProfile']).toMatchObject({ purposes: [] });
});

test('what is not a profile is refused, and a key of a label reaches its devices alone', async () => {
  const [mine = '', other = ''] = await world.register(2);
  await world.finished(
    await world.act({ action: 'label', labels: ['cellar'], deviceAuthUuids: [mine] }),
  );
  const refused = async (more: object) => {
    const answer = await world.act({ action: 'profile', filter: {}, ...more });
    return [answer.status, (answer.body['errors'] as { path: string }[] | undefined)?.[0]?.path];
  };
  expect(await refused({})).toEqual([400, '/purposeUuids']);
  expect(await refused({ purposes: [purpose(1), purpose(1)] })).toEqual([400, expect.any(String)]);
  expect(await refused({ purposeUuids: [crypto.randomUUID()] })).toEqual([404, undefined]);
  const token = await world.makeKey({
    scopes: ['devices:write', 'devices:read'],
    labels: ['cellar'],
  });
  const deviceAuthUuids = [mine, other];
  const body = { action: 'profile', purposes: [purpose(9)], deviceAuthUuids };
  const preview = await world.preview(body, token);
  expect(preview.body['devices']).toMatchObject([
    { outcome: 'install' },
    { outcome: 'no-such-device' },
  ]);
  const job = await world.finished(await world.act(body, token), token);
  expect(job['failed']).toEqual([{ deviceAuthUuid: other, reason: 'no-such-device' }]);
  expect(await namesOf([mine, other])).toEqual([['above 9'], undefined]);
});

test('a key of a label sees no profile that only other devices have, but one that its own have refused', async () => {
  const [mine = '', other = ''] = await world.register(2);
  const hidden = await install([other], purpose(5));
  const refused = await install([mine], purpose(6));
  await world.finished(
    await world.act({ action: 'label', labels: ['cellar'], deviceAuthUuids: [mine] }),
  );
  await world.db.query(`update device_profile set state = 'rejected' where profile_id = $1`, [
    refused,
  ]);
  const token = await world.makeKey({
    scopes: ['devices:write', 'devices:read'],
    labels: ['cellar'],
  });
  const changes = [{ puId: 1, stId: 1, evId: 5, cause: 0, thresholds: { isGt: 8 } }];
  const statuses = async (ifPId: string) => {
    const body = { action: 'limits', ifPId, changes, deviceAuthUuids: [mine] };
    return [(await world.preview(body, token)).status, (await world.act(body, token)).status];
  };
  expect(await statuses(hidden)).toEqual([404, 404]);
  expect(await statuses(refused)).toEqual([200, 200]);
  const { body } = await world.get('/v2/profiles', token);
  expect(body['profiles']).toMatchObject([{ pId: refused, refused: 1 }]);
  expect((await world.get(`/v2/profiles/${refused}`, token)).status).toBe(200);
  expect((await world.get(`/v2/profiles/${hidden}`, token)).status).toBe(404);
});

test('a preview shows stored purposes to keys that may read or install them', async () => {
  const [uuid = ''] = await world.register(1);
  const stored = await ask(world.url, {
    path: '/v2/purposes',
    token: world.token,
    body: purpose(5),
  });
  const purposeUuids = [stored.body['purposeUuid']];
  const bodies = [
    { action: 'profile', purposeUuids, deviceAuthUuids: [uuid] },
    { action: 'limits', limits: [{ ifPId: null, purposeUuids }], deviceAuthUuids: [uuid] },
  ];
  const statuses = async (...scopes: string[]) => {
    const token = await world.makeKey({ scopes });
    return Promise.all(bodies.map(async (body) => (await world.preview(body, token)).status));
  };
  expect(await statuses('devices:read')).toEqual([403, 403]);
  expect(await statuses('devices:read', 'purposes:read')).toEqual([200, 200]);
  expect(await statuses('devices:read', 'devices:write')).toEqual([200, 200]);
});
