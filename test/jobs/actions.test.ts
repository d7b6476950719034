import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { startJobWorld, type JobWorld } from './world.ts';

let world: JobWorld;
beforeAll(async () => {
  world = await startJobWorld();
});
afterAll(() => world?.close());
beforeEach(() => world.openAccount());

describe('an action on many devices', () => {
  test('labels the named devices, each once, and says which do not exist', async () => {
    const uuids = await world.register(45);
    const stranger = crypto.randomUUID();
    const named = [...uuids.slice(0, 40), stranger, String(uuids[0]).toUpperCase()];
    const started = await world.act({
      action: 'label',
      labels: ['attic', 'a'],
      deviceAuthUuids: named,
    });
    const job = await world.finished(started);
    expect(job).toEqual({
      action: 'label',
      labels: ['attic', 'a'],
      state: 'done',
      done: 41,
      of: 41,
      failed: [{ deviceAuthUuid: stranger, reason: 'no-such-device' }],
      kept: 0,
      startedTs: expect.any(Number),
      endedTs: expect.any(Number),
      by: 'session',
      undo: { action: 'unlabel', untilTs: expect.any(Number) },
      timestamp: expect.any(Number),
    });
    const labels = await world.labelsByUuid();
    expect(uuids.map((uuid) => labels.get(uuid)?.length)).toEqual([
      ...Array.from({ length: 40 }, () => 2),
      ...Array.from({ length: 5 }, () => 0),
    ]);
    await world.finished(
      await world.act({ action: 'label', labels: ['a', 'b'], filter: { label: 'attic' } }),
    );
    const both = { action: 'label', labels: ['c'], filter: { label: ['attic', 'nobody'] } };
    expect(await world.finished(await world.act(both))).toMatchObject({ of: 0 });
    await world.finished(await world.act({ action: 'unlabel', labels: ['attic'], filter: {} }));
    expect((await world.labelsByUuid()).get(String(uuids[0]))).toEqual(['a', 'b']);
  });

  test('on labels is undone by its jobId, except for what it did not change', async () => {
    const uuids = await world.register(4);
    const [had = '', ...others] = uuids;
    const label = { action: 'label', labels: ['cellar'] };
    await world.finished(await world.act({ ...label, deviceAuthUuids: [had] }));
    const started = await world.act({ ...label, filter: {} });
    expect(await world.finished(started)).toMatchObject({ of: 3, done: 3, labels: ['cellar'] });
    const back = { action: 'unlabel', labels: ['cellar'], jobId: started.body['jobId'] };
    const undone = await world.act(back);
    expect(await world.finished(undone)).toMatchObject({ of: 3, failed: [] });
    const labels = await world.labelsByUuid();
    expect([had, ...others].map((uuid) => labels.get(uuid))).toEqual([['cellar'], [], [], []]);
    const { body } = await world.get('/v2/devices/labels');
    expect(body['labels']).toEqual([{ label: 'cellar', devices: 1 }]);
    const { body: list } = await world.get('/v2/jobs');
    expect((list['jobs'] as object[])[0]).toMatchObject({ action: 'unlabel', failures: 0 });
    // An hour after its end, its devices have been forgotten.
    await world.db.query(`update job set ended_at = now() - interval '61 minutes'`);
    await world.finished(await world.act({ action: 'unmute', filter: {} }));
    expect((await world.act(back)).status).toBe(404);
    const gone = await world.act({ action: 'remove', filter: {} });
    await world.finished(gone);
    expect((await world.act({ ...back, jobId: gone.body['jobId'] })).status).toBe(404);
  });

  test('does not change a device that would have too many labels', async () => {
    const [uuid = ''] = await world.register(1);
    const many = Array.from({ length: 19 }, (_, n) => `label ${n}`);
    await world.finished(await world.act({ action: 'label', labels: many, filter: {} }));
    const started = await world.act({ action: 'label', labels: ['x', 'y'], filter: {} });
    await world.finished(started);
    // With its name as it is now.
    await world.db.query(`update device set name = 'Attic' where uuid = $1`, [uuid]);
    const path = `/v2/jobs/${String(started.body['jobId'])}`;
    expect((await world.get(path)).body['failed']).toEqual([
      { deviceAuthUuid: uuid, deviceName: 'Attic', reason: 'too-many-labels' },
    ]);
    expect((await world.labelsByUuid()).get(uuid)).toEqual(many);
  });

  test('mutes, and unmutes', async () => {
    const uuids = await world.register(25);
    const untilTs = Date.now() + 3_600_000;
    const muted = async () => {
      const { rows } = await world.db.query<{ until: number; reason: string }>(
        `select m.until_at as until, m.reason from device_mute m join device d on d.id = m.device_id
          where d.uuid = any($1)`,
        [uuids],
      );
      return rows.map(({ until, reason }) => [until, reason]);
    };
    await world.finished(
      await world.act({ action: 'mute', untilTs, reason: 'defrosting', filter: { search: 'd' } }),
    );
    expect(await muted()).toEqual(uuids.map(() => [untilTs, 'defrosting']));
    const { body } = await world.get('/v2/accounts/audit?kinds=device-muted&limit=100');
    const entries = body['entries'] as { details: { deviceAuthUuid: string } }[];
    expect(entries.map(({ details }) => details.deviceAuthUuid).toSorted()).toEqual(
      uuids.toSorted(),
    );
    await world.finished(await world.act({ action: 'unmute', filter: {} }));
    expect(await muted()).toEqual([]);
  });

  test('removes those that the filter finds, with an audit entry for each', async () => {
    const gone = await world.register(30, 'old');
    const stays = await world.register(3, 'new');
    const job = await world.finished(
      await world.act({ action: 'remove', filter: { search: 'old' } }),
    );
    expect(job).toMatchObject({ state: 'done', done: 30, of: 30, failed: [] });
    expect([...(await world.labelsByUuid()).keys()].toSorted()).toEqual(stays.toSorted());
    const { body } = await world.get('/v2/accounts/audit?kinds=device-removed&limit=100');
    const entries = body['entries'] as { by: string; details: { deviceAuthUuid: string } }[];
    expect(entries.map(({ details }) => details.deviceAuthUuid).toSorted()).toEqual(
      gone.toSorted(),
    );
    expect(new Set(entries.map(({ by }) => by))).toEqual(new Set(['session']));
  });

  test('on no device is done at once', async () => {
    const job = await world.finished(
      await world.act({ action: 'remove', filter: { online: true } }),
    );
    expect(job).toMatchObject({ state: 'done', done: 0, of: 0 });
  });

  const refused: [string, object, string][] = [
    ['no devices', { action: 'remove' }, 'filter'],
    ['a job and a filter', { action: 'unmute', filter: {}, jobId: crypto.randomUUID() }, 'filter'],
    ['both', { action: 'remove', filter: {}, deviceAuthUuids: [crypto.randomUUID()] }, 'filter'],
    ['no labels', { action: 'label', filter: {} }, 'labels'],
    [
      'labels for an action without labels',
      { action: 'remove', labels: ['a'], filter: {} },
      'labels',
    ],
    ['no end of a mute', { action: 'mute', filter: {} }, 'untilTs'],
    [
      'a reason for an action other than mute',
      { action: 'remove', reason: 'old', filter: {} },
      'reason',
    ],
    ['a time in the past', { action: 'mute', untilTs: 5, filter: {} }, 'untilTs'],
    ['an unknown filter', { action: 'remove', filter: { nmae: 'x' } }, 'filter'],
    [
      'a state with too large a number',
      { action: 'remove', filter: { state: '0:9000000000' } },
      'filter/state',
    ],
  ];
  test.each(refused)('with %s gives 400', async (_what, body, path) => {
    const answer = await world.act(body);
    expect(answer.status).toBe(400);
    expect(answer.body['errors']).toMatchObject([{ path: `/${path}` }]);
  });
});
