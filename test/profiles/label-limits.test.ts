import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { removeUnusedProfiles } from '../../src/profiles/queries.ts';
import { type Answer, ask } from '../idempotency/repeat.ts';
import { type JobWorld, startJobWorld } from '../jobs/world.ts';
import { thresholdPurpose } from '../journeys/app.ts';

let world: JobWorld;
beforeAll(async () => void (world = await startJobWorld()));
afterAll(() => world?.close());
beforeEach(() => world.openAccount());

const path = '/v2/devices/labels/limits';
const call = (method: string, to: string, body?: unknown): Promise<Answer> =>
  ask(world.url, { method, path: to, token: world.token, body });

/** A stored purpose, by its limit. */
async function storePurpose(isGt: number): Promise<string> {
  const answer = await call('POST', '/v2/purposes', thresholdPurpose(1, isGt));
  return String(answer.body['purposeUuid']);
}

/** In this order; waits for the devices that have the labels already. */
async function setLimits(...limits: [label: string, purposeUuid: string][]) {
  const body = { limits: limits.map(([label, purposeUuid]) => ({ label, purposeUuid })) };
  const answer = await call('PUT', path, body);
  const job = await world.finished(answer);
  return { jobId: answer.body['jobId'], job };
}

async function register(labels: string[], more: { key?: string } = {}): Promise<string> {
  const { token, url } = world;
  const body = { device: {}, module: [], labels };
  const answer = await ask(url, { path: '/v2/devices', token, body, ...more });
  return String(answer.body['deviceAuthUuid']);
}
const setLabels = (uuid: string, labels: string[]) =>
  call('PUT', `/v2/devices/${uuid}/labels`, { labels });
const install = (uuid: string, isGt: number) =>
  call('POST', '/v2/devices/profile', {
    deviceAuthUuids: [uuid],
    purposes: [thresholdPurpose(1, isGt)],
  });

/** The limit that a device has, or waits for, and where that comes from. */
async function limitOf(uuid: string) {
  const { body } = await world.get(`/v2/devices/${uuid}/configuration`);
  type Profile = { purposes?: ReturnType<typeof thresholdPurpose>[] };
  const [current, pending] = ['currentProfile', 'pendingProfile'].map((of) => body[of] as Profile);
  const purposes = pending?.purposes ?? current?.purposes;
  const isGt = purposes?.[0]?.states[0]?.events[0]?.causes[0]?.thresholds?.isGt ?? null;
  const { body: found } = await world.get(`/v2/devices/${uuid}`);
  return [isGt, (found['device'] as { limitsFrom: unknown }).limitsFrom];
}

test('a device takes the limits of a label in whatever way it gets the label', async () => {
  const freezer = await storePurpose(-18);
  await setLimits(['freezer', freezer]);
  expect((await world.get(path)).body).toMatchObject({
    limits: [{ label: 'freezer', purposeUuid: freezer }],
  });
  const of = { label: 'freezer' };
  const registered = await register(['cellar', 'freezer']);
  expect(await limitOf(registered)).toEqual([-18, of]);
  const keyed = await register(['freezer'], { key: crypto.randomUUID() });
  expect(await limitOf(keyed)).toEqual([-18, of]);
  const other = await register(['cellar']);
  expect(await limitOf(other)).toEqual([null, null]);
  const batch = await call('POST', '/v2/devices/batch', {
    devices: [['freezer'], []].map((labels) => ({ device: {}, module: [], labels })),
  });
  const [one = '', two = ''] = (batch.body['devices'] as { deviceAuthUuid: string }[]).map(
    ({ deviceAuthUuid }) => deviceAuthUuid,
  );
  expect([await limitOf(one), await limitOf(two)]).toEqual([
    [-18, of],
    [null, null],
  ]);
  await setLabels(two, ['freezer']);
  expect(await limitOf(two)).toEqual([-18, of]);
  await world.finished(
    await world.act({ action: 'label', labels: ['freezer'], deviceAuthUuids: [other] }),
  );
  expect(await limitOf(other)).toEqual([-18, of]);
  // In pages, too.
  const { body } = await world.get('/v2/devices?limit=10');
  const listed = (body['devices'] as { limitsFrom: unknown }[]).map(({ limitsFrom }) => limitsFrom);
  expect(listed).toEqual(listed.map(() => of));
});

test('the first label in the order of the account counts, and limits stay when no label has any', async () => {
  const [freezer, fridge] = [await storePurpose(-18), await storePurpose(8)];
  await setLimits(['freezer', freezer], ['fridge', fridge]);
  const uuid = await register(['fridge']);
  expect(await limitOf(uuid)).toEqual([8, { label: 'fridge' }]);
  await setLabels(uuid, ['fridge', 'freezer']);
  expect(await limitOf(uuid)).toEqual([-18, { label: 'freezer' }]);
  await setLabels(uuid, ['fridge']);
  expect(await limitOf(uuid)).toEqual([8, { label: 'fridge' }]);
  // It is watched until somebody says otherwise.
  await setLabels(uuid, []);
  expect(await limitOf(uuid)).toEqual([8, { label: 'fridge' }]);
  await world.finished(await world.act({ action: 'label', labels: ['freezer'], filter: {} }));
  expect(await limitOf(uuid)).toEqual([-18, { label: 'freezer' }]);
  await world.finished(await world.act({ action: 'unlabel', labels: ['freezer'], filter: {} }));
  expect(await limitOf(uuid)).toEqual([-18, { label: 'freezer' }]);
});

test('own limits stay, whatever its labels', async () => {
  const freezer = await storePurpose(-18);
  const uuid = await register([]);
  await install(uuid, 5);
  expect(await limitOf(uuid)).toEqual([5, 'own']);
  await setLabels(uuid, ['freezer']);
  await setLimits(['freezer', freezer]);
  expect(await limitOf(uuid)).toEqual([5, 'own']);
  const another = await register(['freezer']);
  expect(await limitOf(another)).toEqual([-18, { label: 'freezer' }]);
  await install(another, 6);
  await setLabels(another, []);
  await setLabels(another, ['freezer']);
  expect(await limitOf(another)).toEqual([6, 'own']);

  // Until somebody gives them up.
  const none = await register([]);
  await install(none, 7);
  const given = await world.act({ action: 'label-limits', filter: {} });
  expect(await world.finished(given)).toMatchObject({
    action: 'label-limits',
    done: 3,
    failed: [],
  });
  for (const each of [uuid, another])
    expect(await limitOf(each)).toEqual([-18, { label: 'freezer' }]);
  expect(await limitOf(none)).toEqual([7, 'own']);
  await world.finished(await world.act({ action: 'restore', jobId: given.body['jobId'] }));
  expect([await limitOf(uuid), await limitOf(another)]).toEqual([
    [5, 'own'],
    [6, 'own'],
  ]);
});

test('other limits of labels reach the devices that have them as a job, which is taken back', async () => {
  const [freezer, fridge, colder] = [
    await storePurpose(-18),
    await storePurpose(8),
    await storePurpose(-20),
  ];
  const uuids: string[] = [];
  for (let n = 0; n < 25; n += 1) uuids.push(await register(['freezer']));
  const [own = '', ...rest] = uuids;
  const both = await register(['freezer', 'fridge']);
  await install(own, 5);
  await setLimits(['freezer', freezer], ['fridge', fridge]);
  const limits = async (of: string[]) => {
    const all = await Promise.all(of.map(limitOf));
    return [...new Set(all.map((each) => JSON.stringify(each)))].map((each) => JSON.parse(each));
  };
  expect(await limits([...rest, both])).toEqual([[-18, { label: 'freezer' }]]);

  const { jobId, job } = await setLimits(['fridge', fridge], ['freezer', colder]);
  expect(job).toMatchObject({ action: 'label-limits', done: 25, of: 25, failed: [] });
  expect(await limits(rest)).toEqual([[-20, { label: 'freezer' }]]);
  expect(await limitOf(both)).toEqual([8, { label: 'fridge' }]);
  expect(await limitOf(own)).toEqual([5, 'own']);
  const { body: trail } = await world.get('/v2/accounts/audit?kinds=label-limits-changed');
  expect((trail['entries'] as object[])[0]).toMatchObject({
    details: { labels: ['fridge', 'freezer'] },
  });

  const back = await world.finished(await world.act({ action: 'restore', jobId }));
  expect(back['failed']).toEqual([]);
  expect(await limits([...rest, both])).toEqual([[-18, { label: 'freezer' }]]);
  expect(await limitOf(own)).toEqual([5, 'own']);

  // The same again changes nothing: the devices keep what they have evaluated.
  const pIds = async () => (await world.db.query('select count(*) from device_profile')).rows;
  await setLimits(['fridge', fridge], ['freezer', colder]);
  const before = await pIds();
  const same = await setLimits(['fridge', fridge], ['freezer', colder]);
  expect(same.job).toMatchObject({ state: 'done', of: 0 });
  expect(await pIds()).toEqual(before);
});

test('the copy of the purpose stays as long as the label has it, and devices join without the purpose', async () => {
  const freezer = await storePurpose(-18);
  await setLimits(['freezer', freezer]);
  await call('PUT', `/v2/purposes/${freezer}`, thresholdPurpose(1, -30));
  await call('DELETE', `/v2/purposes/${freezer}`);
  await removeUnusedProfiles(world.db, new AbortController().signal);
  expect(await limitOf(await register(['freezer']))).toEqual([-18, { label: 'freezer' }]);
  await setLimits();
  expect((await world.get(path)).body['limits']).toEqual([]);
  expect(await limitOf(await register(['freezer']))).toEqual([null, null]);
});

test('labels that get limits while devices get labels miss none of them', async () => {
  const [freezer, fridge] = [await storePurpose(-18), await storePurpose(8)];
  const uuids = await Promise.all(Array.from({ length: 20 }, () => register([])));
  const [, ...made] = await Promise.all([
    setLimits(['freezer', freezer]).then(() => setLimits(['freezer', fridge])),
    ...Array.from({ length: 20 }, () => register(['freezer'])),
    ...uuids.map(async (uuid) => {
      const { status } = await setLabels(uuid, ['freezer']);
      expect(status).toBe(200);
      return uuid;
    }),
  ]);
  expect(made).toHaveLength(40);
  for (const uuid of made) expect(await limitOf(uuid)).toEqual([8, { label: 'freezer' }]);
});

test('a device that gets a label while its limits are being stored takes them', async () => {
  const freezer = await storePurpose(-18);
  const old = await register([]);
  const waiting = async (count: number) => {
    const { rowCount } = await world.db.query(
      `select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock' and query not like '%job j%'`,
    );
    return (rowCount ?? 0) >= count;
  };
  const ended = { labels: false, registration: false };
  const started = await world.db.transaction(async (tx) => {
    // The limits have been stored, and devices looked for, when the job is.
    await tx.query('lock table job in share mode');
    const put = call('PUT', path, { limits: [{ label: 'freezer', purposeUuid: freezer }] });
    await expect.poll(() => waiting(1)).toBe(true);
    const label = setLabels(old, ['freezer']).finally(() => void (ended.labels = true));
    const registration = register(['freezer']).finally(() => void (ended.registration = true));
    const isSettled = async () => (ended.labels && ended.registration) || (await waiting(3));
    await expect.poll(isSettled).toBe(true);
    return { put, label, registration };
  });
  await world.finished(await started.put);
  expect((await started.label).status).toBe(200);
  for (const uuid of [old, await started.registration])
    expect(await limitOf(uuid)).toEqual([-18, { label: 'freezer' }]);
});

test('what is not a purpose, or named twice, is refused, and a key of a label may not', async () => {
  const freezer = await storePurpose(-18);
  const put = (...limits: object[]) => call('PUT', path, { limits });
  expect((await put({ label: 'a', purposeUuid: crypto.randomUUID() })).status).toBe(404);
  const twice = { label: 'a', purposeUuid: freezer };
  expect((await put(twice, twice)).status).toBe(400);
  expect((await world.get(path)).body['limits']).toEqual([]);
  const token = await world.makeKey({ scopes: ['devices:write', 'devices:read'], labels: ['a'] });
  expect((await world.get(path, token)).status).toBe(403);
});

const restore = async (jobId: unknown) =>
  world.finished(await world.act({ action: 'restore', jobId }));

test('taking limits of labels back puts them back for devices that get the label later, too', async () => {
  const [freezer, colder] = [await storePurpose(-18), await storePurpose(-20)];
  await setLimits(['freezer', freezer]);
  const old = await register(['freezer']);
  const { jobId } = await setLimits(['freezer', colder]);
  const since = await register(['freezer']);
  expect(await limitOf(since)).toEqual([-20, { label: 'freezer' }]);
  await removeUnusedProfiles(world.db, new AbortController().signal);
  const undo = await world.act({ action: 'restore', jobId });
  expect(await world.finished(undo)).toMatchObject({ done: 2, failed: [] });
  const all = async () => [await limitOf(old), await limitOf(since)];
  expect(await all()).toEqual([
    [-18, { label: 'freezer' }],
    [-18, { label: 'freezer' }],
  ]);
  expect((await world.get(path)).body['limits']).toEqual([
    { label: 'freezer', purposeUuid: freezer },
  ]);
  expect(await limitOf(await register(['freezer']))).toEqual([-18, { label: 'freezer' }]);
  // And taking that back brings the other ones again.
  await restore(undo.body['jobId']);
  expect(await all()).toEqual([
    [-20, { label: 'freezer' }],
    [-20, { label: 'freezer' }],
  ]);
  expect(await limitOf(await register(['freezer']))).toEqual([-20, { label: 'freezer' }]);
});

test('limits of labels that no device has are taken back as well, unless they were replaced since', async () => {
  const [freezer, colder] = [await storePurpose(-18), await storePurpose(-20)];
  const limits = async () => (await world.get(path)).body['limits'];
  const first = await setLimits(['freezer', freezer]);
  expect(first.job).toMatchObject({ of: 0 });
  const second = await setLimits(['freezer', colder]);
  await restore(first.jobId);
  expect(await limits()).toEqual([{ label: 'freezer', purposeUuid: colder }]);
  await removeUnusedProfiles(world.db, new AbortController().signal);
  await restore(second.jobId);
  expect(await limits()).toEqual([{ label: 'freezer', purposeUuid: freezer }]);
  expect(await limitOf(await register(['freezer']))).toEqual([-18, { label: 'freezer' }]);
});

test('own limits that are those of the label become its, and are own again', async () => {
  const freezer = await storePurpose(-18);
  const own = await register([]);
  await install(own, -18);
  await setLabels(own, ['freezer']);
  await setLimits(['freezer', freezer]);
  expect(await limitOf(own)).toEqual([-18, 'own']);
  const given = await world.act({ action: 'label-limits', filter: {} });
  await world.finished(given);
  expect(await limitOf(own)).toEqual([-18, { label: 'freezer' }]);
  const undo = await world.act({ action: 'restore', jobId: given.body['jobId'] });
  expect(await world.finished(undo)).toMatchObject({ done: 1, failed: [] });
  expect(await limitOf(own)).toEqual([-18, 'own']);
  await restore(undo.body['jobId']);
  expect(await limitOf(own)).toEqual([-18, { label: 'freezer' }]);
  // Whoever gives it another label means that.
  await setLimits(['freezer', freezer], ['cold', freezer]);
  await setLabels(own, ['cold']);
  await restore(given.body['jobId']);
  expect(await limitOf(own)).toEqual([-18, { label: 'cold' }]);
});

test('giving devices the limits of their labels fails for those that do not exist', async () => {
  const gone = crypto.randomUUID();
  const deviceAuthUuids = [await register([]), gone];
  const job = await world.finished(await world.act({ action: 'label-limits', deviceAuthUuids }));
  expect(job['failed']).toEqual([{ deviceAuthUuid: gone, reason: 'no-such-device' }]);
});

test('the same limits, also of many labels, are held by one profile', async () => {
  const freezer = await storePurpose(-18);
  const of = async () => {
    const { rows } = await world.db.query<{ count: number }>(
      `select count(*)::integer as count from profile p join purpose o on o.account_id = p.account_id
        where o.id = $1`,
      [freezer],
    );
    return rows[0]?.count;
  };
  const limits = ['a', 'b', 'c'].map((label): [string, string] => [label, freezer]);
  await setLimits(...limits);
  expect(await of()).toBe(1);
  await setLimits(...limits, ['d', freezer]);
  expect(await of()).toBe(1);
});

test('limits of labels can be replaced while the account is being removed', async () => {
  const freezer = await storePurpose(-18);
  const waiting = async (sinceMs = 0) => {
    const { rowCount } = await world.db.query(
      `select from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'
          and clock_timestamp() - query_start > $1 * interval '1 millisecond'`,
      [sinceMs],
    );
    return rowCount;
  };
  const asked = await world.db.transaction(async (tx) => {
    // What is installed cannot be stored yet: the account's usage is locked, and its row is not.
    await tx.query('lock table profile_content in share mode');
    const put = call('PUT', path, { limits: [{ label: 'freezer', purposeUuid: freezer }] });
    await expect.poll(() => waiting()).toBe(1);
    const removal = call('DELETE', '/v2/accounts');
    // It has looked for a deadlock by then, once and for all.
    await expect.poll(() => waiting(1_500), { timeout: 10_000 }).toBe(2);
    return { put, removal };
  });
  expect((await asked.put).status).toBe(200);
  expect((await asked.removal).status).toBe(200);
});
