import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openTestDatabase } from '../support/database.ts';
import type { Database } from '../../src/db/database.ts';
import { ask, openAccount, type Answer } from '../idempotency/repeat.ts';
import { configuration } from '../journeys/app.ts';
import { testService, type TestService } from '../journeys/service.ts';

let service: TestService;
let db: Database;
let token: string;

beforeAll(async () => {
  service = await testService();
  db = openTestDatabase(service.databaseUrl);
});
afterAll(async () => {
  await db?.close();
  await service?.close();
});
beforeEach(async () => {
  token = await openAccount(service.url);
});

const get = (path: string, by = token) => ask(service.url, { method: 'GET', path, token: by });
const act = (body: unknown, by = token) =>
  ask(service.url, { path: '/v2/devices/actions', token: by, body });

async function register(count: number, name = 'device'): Promise<string[]> {
  const devices = Array.from({ length: count }, (_, n) => ({
    ...configuration,
    device: { name: `${name} ${n}` },
  }));
  const answer = await ask(service.url, { path: '/v2/devices/batch', token, body: { devices } });
  const registered = answer.body['devices'] as { deviceAuthUuid: string }[];
  return registered.map(({ deviceAuthUuid }) => deviceAuthUuid);
}

/** The job, once it has ended. */
async function finished({ status, text, body }: Answer, by = token) {
  expect(status, text).toBe(200);
  const path = `/v2/jobs/${String(body['jobId'])}`;
  await expect
    .poll(async () => (await get(path, by)).body['state'], { timeout: 60_000 })
    .not.toBe('running');
  return (await get(path, by)).body;
}

async function labelsByUuid(): Promise<Map<string, string[]>> {
  const { body } = await get('/v2/devices');
  const devices = body['devices'] as { uuid: string; labels: string[] }[];
  return new Map(devices.map(({ uuid, labels }) => [uuid, labels]));
}

async function makeKey(given: object): Promise<string> {
  const body = { name: 'a program', ...given };
  const answer = await ask(service.url, { path: '/v2/accounts/keys', token, body });
  return String(answer.body['key']);
}

describe('an action on many devices', () => {
  test('labels those that are named, each once, and says which are not there', async () => {
    const uuids = await register(45);
    const stranger = crypto.randomUUID();
    const named = [...uuids.slice(0, 40), stranger, String(uuids[0]).toUpperCase()];
    const started = await act({ action: 'label', labels: ['attic', 'a'], deviceAuthUuids: named });
    const job = await finished(started);
    expect(job).toEqual({
      action: 'label',
      state: 'done',
      done: 41,
      of: 41,
      failed: [{ deviceAuthUuid: stranger, reason: 'no-such-device' }],
      startedTs: expect.any(Number),
      endedTs: expect.any(Number),
      timestamp: expect.any(Number),
    });
    const labels = await labelsByUuid();
    expect(uuids.map((uuid) => labels.get(uuid)?.length)).toEqual([
      ...Array.from({ length: 40 }, () => 2),
      ...Array.from({ length: 5 }, () => 0),
    ]);
    await finished(await act({ action: 'label', labels: ['a', 'b'], filter: { label: 'attic' } }));
    await finished(await act({ action: 'unlabel', labels: ['attic'], filter: {} }));
    expect((await labelsByUuid()).get(String(uuids[0]))).toEqual(['a', 'b']);
  });

  test('leaves a device as it is that would have too many labels', async () => {
    const [uuid = ''] = await register(1);
    const many = Array.from({ length: 19 }, (_, n) => `label ${n}`);
    await finished(await act({ action: 'label', labels: many, filter: {} }));
    const job = await finished(await act({ action: 'label', labels: ['x', 'y'], filter: {} }));
    expect(job['failed']).toEqual([{ deviceAuthUuid: uuid, reason: 'too-many-labels' }]);
    expect((await labelsByUuid()).get(uuid)).toEqual(many);
  });

  test('mutes, and ends it', async () => {
    const uuids = await register(25);
    const untilTs = Date.now() + 3_600_000;
    const muted = async () => {
      const { rows } = await db.query<{ until: number }>(
        `select m.until_at as until from device_mute m join device d on d.id = m.device_id
          where d.uuid = any($1)`,
        [uuids],
      );
      return rows.map(({ until }) => until);
    };
    await finished(await act({ action: 'mute', untilTs, filter: { search: 'device' } }));
    expect(await muted()).toEqual(uuids.map(() => untilTs));
    await finished(await act({ action: 'unmute', filter: {} }));
    expect(await muted()).toEqual([]);
  });

  test('removes those that the filter finds, with an entry of each', async () => {
    const gone = await register(30, 'old');
    const stays = await register(3, 'new');
    const job = await finished(await act({ action: 'remove', filter: { search: 'old' } }));
    expect(job).toMatchObject({ state: 'done', done: 30, of: 30, failed: [] });
    expect([...(await labelsByUuid()).keys()].toSorted()).toEqual(stays.toSorted());
    const { body } = await get('/v2/accounts/audit?kinds=device-removed&limit=100');
    const entries = body['entries'] as { by: string; details: { deviceAuthUuid: string } }[];
    expect(entries.map(({ details }) => details.deviceAuthUuid).toSorted()).toEqual(
      gone.toSorted(),
    );
    expect(new Set(entries.map(({ by }) => by))).toEqual(new Set(['session']));
  });

  test('of no device is done at once', async () => {
    const job = await finished(await act({ action: 'remove', filter: { online: true } }));
    expect(job).toMatchObject({ state: 'done', done: 0, of: 0 });
  });

  const refused: [string, object, string][] = [
    ['no devices', { action: 'remove' }, 'filter'],
    ['both', { action: 'remove', filter: {}, deviceAuthUuids: [crypto.randomUUID()] }, 'filter'],
    ['no labels', { action: 'label', filter: {} }, 'labels'],
    ['labels where none are taken', { action: 'remove', labels: ['a'], filter: {} }, 'labels'],
    ['no time', { action: 'mute', filter: {} }, 'untilTs'],
    ['a time that is past', { action: 'mute', untilTs: 5, filter: {} }, 'untilTs'],
    ['an unknown filter', { action: 'remove', filter: { nmae: 'x' } }, 'filter'],
    ['a state beyond all', { action: 'remove', filter: { state: '0:9000000000' } }, 'filter/state'],
  ];
  test.each(refused)('with %s is 400', async (_what, body, path) => {
    const answer = await act(body);
    expect(answer.status).toBe(400);
    expect(answer.body['errors']).toMatchObject([{ path: `/${path}` }]);
  });
});

describe('jobs', () => {
  /** Nothing is done while `work` lasts: another one does something of a job. */
  const whileNoneRuns = (work: () => Promise<void>) =>
    db.transaction(async (tx) => {
      await tx.query('select pg_advisory_xact_lock(7212)');
      await work();
    });

  test('are listed, stopped, and two at a time', async () => {
    const uuids = await register(30);
    await whileNoneRuns(async () => {
      const first = await act({ action: 'label', labels: ['a'], filter: {} });
      const second = await act({ action: 'remove', filter: {} });
      const third = await act({ action: 'label', labels: ['b'], filter: {} });
      expect([third.status, third.body]).toEqual([
        403,
        expect.objectContaining({ quota: 'jobs', limit: 2, used: 2 }),
      ]);
      const { body } = await get('/v2/jobs');
      expect(body['jobs']).toMatchObject([
        { jobId: second.body['jobId'], action: 'remove', state: 'running', done: 0, of: 30 },
        { jobId: first.body['jobId'], action: 'label', state: 'running' },
      ]);
      const path = `/v2/jobs/${String(second.body['jobId'])}`;
      const stopped = await ask(service.url, { method: 'DELETE', path, token });
      expect(stopped.status).toBe(200);
      expect((await get(path)).body).toMatchObject({ state: 'stopped', done: 0, of: 30 });
      expect((await ask(service.url, { method: 'DELETE', path, token })).status).toBe(200);
      expect((await act({ action: 'label', labels: ['b'], filter: {} })).status).toBe(200);
    });
    const running = async () => {
      const { body } = await get('/v2/jobs');
      return (body['jobs'] as { state: string }[]).filter(({ state }) => state === 'running')
        .length;
    };
    await expect.poll(running, { timeout: 60_000 }).toBe(0);
    const labels = await labelsByUuid();
    expect(uuids.map((uuid) => labels.get(uuid))).toEqual(uuids.map(() => ['a', 'b']));
  });

  test('of several accounts take turns', async () => {
    const began: string[] = [];
    const tokens = [token, await openAccount(service.url)];
    const jobs: Answer[] = [];
    await whileNoneRuns(async () => {
      for (const each of tokens) {
        token = each;
        await register(each === tokens[0] ? 300 : 20);
        jobs.push(await act({ action: 'label', labels: ['x'], filter: {} }));
        began.push(each);
      }
    });
    // The small one has ended when the large one, which was first, is not half done.
    await finished(jobs[1] as Answer, tokens[1]);
    const large = `/v2/jobs/${String(jobs[0]?.body['jobId'])}`;
    expect((await get(large, tokens[0])).body['done']).toBeLessThan(150);
    await finished(jobs[0] as Answer, tokens[0]);
  });

  test('of another account are none', async () => {
    await register(2);
    const started = await act({ action: 'label', labels: ['x'], filter: {} });
    const path = `/v2/jobs/${String(started.body['jobId'])}`;
    const stranger = await openAccount(service.url);
    expect((await get(path, stranger)).status).toBe(404);
    const stopped = await ask(service.url, { method: 'DELETE', path, token: stranger });
    expect(stopped.status).toBe(404);
    await finished(started);
  });

  test('of a disabled account rest, and go on when it is enabled', async () => {
    await register(2);
    const job = { id: '' };
    const disable = (at: string) =>
      db.query(
        `update account set disabled_at = ${at} where id in (
        select account_id from job where uuid = $1)`,
        [job.id],
      );
    await whileNoneRuns(async () => {
      const started = await act({ action: 'label', labels: ['x'], filter: {} });
      job.id = String(started.body['jobId']);
      await disable('now()');
    });
    const mine = token;
    token = await openAccount(service.url);
    await register(2);
    await finished(await act({ action: 'label', labels: ['y'], filter: {} }));
    const { rows } = await db.query('select done, state from job where uuid = $1', [job.id]);
    expect(rows).toEqual([{ done: 0, state: 'running' }]);
    await disable('null');
    const state = async () => {
      const { rows: found } = await db.query('select state from job where uuid = $1', [job.id]);
      return found;
    };
    await expect.poll(state, { timeout: 60_000 }).toEqual([{ state: 'done' }]);
    token = mine;
  });

  test('of a key that is confined to labels reach those devices, and it sees no others', async () => {
    const uuids = await register(6);
    const inside = uuids.slice(0, 2);
    const outer = await act({ action: 'label', labels: ['cellar'], deviceAuthUuids: inside });
    await finished(outer);
    const scopes = ['devices:read', 'devices:write', 'alarms:write'];
    const key = await makeKey({ scopes, labels: ['cellar'] });
    const refused = await act({ action: 'label', labels: ['x'], filter: {} }, key);
    expect(refused.status).toBe(403);
    const untilTs = Date.now() + 3_600_000;
    const muting = await finished(await act({ action: 'mute', untilTs, filter: {} }, key), key);
    expect(muting).toMatchObject({ done: 2, of: 2, failed: [] });
    const job = await finished(await act({ action: 'remove', deviceAuthUuids: uuids }, key), key);
    const failed = uuids.slice(2).map((deviceAuthUuid) => {
      return { deviceAuthUuid, reason: 'no-such-device' };
    });
    expect(job).toMatchObject({ done: 6, of: 6, failed });
    expect([...(await labelsByUuid()).keys()]).toEqual(uuids.slice(2));
    expect((await get(`/v2/jobs/${String(outer.body['jobId'])}`, key)).status).toBe(404);
    const { body } = await get('/v2/jobs', key);
    expect((body['jobs'] as { action: string }[]).map(({ action }) => action)).toEqual([
      'remove',
      'mute',
    ]);
    const weak = await makeKey({ scopes: ['devices:write'] });
    const muted = await act({ action: 'mute', untilTs, filter: {} }, weak);
    expect([muted.status, muted.body['detail']]).toEqual([
      403,
      expect.stringMatching(/alarms:write/),
    ]);
    const open = await act({ action: 'remove', filter: { label: 'none' } }, weak);
    expect(open.status).toBe(200);
  });
});
