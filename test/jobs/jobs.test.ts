import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { openAccount, type Answer } from '../idempotency/repeat.ts';
import { pathOf, startJobWorld, type JobWorld } from './world.ts';

let world: JobWorld;
beforeAll(async () => {
  world = await startJobWorld();
});
afterAll(() => world?.close());
beforeEach(() => world.openAccount());

describe('jobs', () => {
  test('are listed, stopped, and run two at a time', async () => {
    const uuids = await world.register(30);
    await world.whileNoneRuns(async () => {
      const first = await world.act({ action: 'label', labels: ['a'], filter: {} });
      const second = await world.act({ action: 'remove', filter: {} });
      const third = await world.act({ action: 'label', labels: ['b'], filter: {} });
      expect([third.status, third.body]).toEqual([
        403,
        expect.objectContaining({ quota: 'jobs', limit: 2, used: 2 }),
      ]);
      const { body } = await world.get('/v2/jobs');
      expect(body['jobs']).toMatchObject([
        { jobId: second.body['jobId'], action: 'remove', state: 'running', done: 0, of: 30 },
        { jobId: first.body['jobId'], action: 'label', state: 'running' },
      ]);
      const path = pathOf(second.body);
      const stopped = await world.stop(path);
      expect(stopped.status).toBe(200);
      expect((await world.get(path)).body).toMatchObject({ state: 'stopped', done: 0, of: 30 });
      expect((await world.stop(path)).status).toBe(200);
      expect((await world.act({ action: 'label', labels: ['b'], filter: {} })).status).toBe(200);
    });
    const running = async () => {
      const { body } = await world.get('/v2/jobs');
      return (body['jobs'] as { state: string }[]).filter(({ state }) => state === 'running')
        .length;
    };
    await expect.poll(running, { timeout: 60_000 }).toBe(0);
    const labels = await world.labelsByUuid();
    expect(uuids.map((uuid) => labels.get(uuid))).toEqual(uuids.map(() => ['a', 'b']));
  });

  test('keep their place for a while if they are stopped with much left; stopping again writes nothing', async () => {
    await world.whileNoneRuns(async () => {
      const named = () => Array.from({ length: 10_000 }, () => crypto.randomUUID());
      const act = () => world.act({ action: 'remove', deviceAuthUuids: named() });
      const [first, second] = [await act(), await act()];
      expect([first.status, second.status, (await act()).status]).toEqual([200, 200, 403]);
      const path = pathOf(first.body);
      await world.stop(path);
      const refused = await fetch(`${world.url}/v2/devices/actions`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${world.token}`, 'Content-Type': 'application/json' },
        body: JSON.stringify({ action: 'unmute', filter: {} }),
      });
      expect(refused.status).toBe(429);
      const waitS = Number(refused.headers.get('retry-after'));
      expect(waitS).toBeGreaterThan(0);
      expect(waitS).toBeLessThanOrEqual(10);
      const row = () =>
        world.db.query('select xmin::text, state from job where uuid = $1', [first.body['jobId']]);
      const before = await row();
      expect((await world.stop(path)).status).toBe(200);
      expect((await row()).rows).toEqual(before.rows);
      // As if ten seconds had passed.
      await world.db.query(
        `update job set ended_at = ended_at - interval '10 seconds' where uuid = $1`,
        [first.body['jobId']],
      );
      expect((await act()).status).toBe(200);
      await world.db.query('delete from job');
    });
  });

  test('name the first thousand devices that failed, and count the others', async () => {
    const named = Array.from({ length: 1_050 }, () => crypto.randomUUID());
    const job = await world.finished(await world.act({ action: 'unmute', deviceAuthUuids: named }));
    const failed = named.slice(0, 1_000).map((deviceAuthUuid) => {
      return { deviceAuthUuid, reason: 'no-such-device' };
    });
    expect(job).toMatchObject({ done: 1_050, failed, failedMore: 50 });
  });

  test('of several accounts take turns', async () => {
    const tokens = [world.token, await openAccount(world.url)];
    const jobs: Answer[] = [];
    await world.whileNoneRuns(async () => {
      for (const each of tokens) {
        world.token = each;
        await world.register(each === tokens[0] ? 300 : 20);
        jobs.push(await world.act({ action: 'label', labels: ['x'], filter: {} }));
      }
    });
    // The small one has ended before the large one, which was first, is half done.
    await world.finished(jobs[1] as Answer, tokens[1]);
    const large = pathOf(jobs[0]?.body ?? {});
    expect((await world.get(large, tokens[0])).body['done']).toBeLessThan(150);
    await world.finished(jobs[0] as Answer, tokens[0]);
  });

  test('of another account are invisible', async () => {
    await world.register(2);
    const started = await world.act({ action: 'label', labels: ['x'], filter: {} });
    const path = pathOf(started.body);
    const stranger = await openAccount(world.url);
    expect((await world.get(path, stranger)).status).toBe(404);
    const stopped = await world.stop(path, stranger);
    expect(stopped.status).toBe(404);
    await world.finished(started);
  });

  test('of a disabled account rest, and continue when it is enabled', async () => {
    await world.register(2);
    const job = { id: '' };
    const disable = (at: string) =>
      world.db.query(
        `update account set disabled_at = ${at} where id in (
        select account_id from job where uuid = $1)`,
        [job.id],
      );
    await world.whileNoneRuns(async () => {
      const started = await world.act({ action: 'label', labels: ['x'], filter: {} });
      job.id = String(started.body['jobId']);
      await disable('now()');
    });
    await world.openAccount();
    await world.register(2);
    await world.finished(await world.act({ action: 'label', labels: ['y'], filter: {} }));
    const { rows } = await world.db.query('select done, state from job where uuid = $1', [job.id]);
    expect(rows).toEqual([{ done: 0, state: 'running' }]);
    await disable('null');
    const state = async () => {
      const { rows: found } = await world.db.query('select state from job where uuid = $1', [
        job.id,
      ]);
      return found;
    };
    await expect.poll(state, { timeout: 60_000 }).toEqual([{ state: 'done' }]);
  });

  test('of a key that is confined to labels reach those devices, and it sees no others', async () => {
    const uuids = await world.register(6);
    const inside = uuids.slice(0, 2);
    const outer = await world.act({ action: 'label', labels: ['cellar'], deviceAuthUuids: inside });
    await world.finished(outer);
    const scopes = ['devices:read', 'devices:write', 'alarms:write'];
    const key = await world.makeKey({ scopes, labels: ['cellar'] });
    const refused = await world.act({ action: 'label', labels: ['x'], filter: {} }, key);
    expect(refused.status).toBe(403);
    const untilTs = Date.now() + 3_600_000;
    const muting = await world.finished(
      await world.act({ action: 'mute', untilTs, filter: {} }, key),
      key,
    );
    expect(muting).toMatchObject({ done: 2, of: 2, failed: [] });
    const job = await world.finished(
      await world.act({ action: 'remove', deviceAuthUuids: uuids }, key),
      key,
    );
    const failed = uuids.slice(2).map((deviceAuthUuid) => {
      return { deviceAuthUuid, reason: 'no-such-device' };
    });
    expect(job).toMatchObject({ done: 6, of: 6, failed });
    expect([...(await world.labelsByUuid()).keys()]).toEqual(uuids.slice(2));
    expect((await world.get(pathOf(outer.body), key)).status).toBe(404);
    const { body } = await world.get('/v2/jobs', key);
    expect((body['jobs'] as { action: string }[]).map(({ action }) => action)).toEqual([
      'remove',
      'mute',
    ]);
    const weak = await world.makeKey({ scopes: ['devices:write'] });
    const muted = await world.act({ action: 'mute', untilTs, filter: {} }, weak);
    expect([muted.status, muted.body['detail']]).toEqual([
      403,
      expect.stringMatching(/alarms:write/),
    ]);
    const open = await world.act({ action: 'remove', filter: { label: 'none' } }, weak);
    expect(open.status).toBe(200);
  });
});
