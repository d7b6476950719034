import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { type App, configuration, pathsOf, purpose, startApp } from '../devices/app.ts';

let app: App;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());

const install = (token: string, body: unknown) =>
  app.call('POST', '/v2/devices/profile', { token, body });
const store = async (token: string, body: unknown) =>
  String((await app.call('POST', '/v2/purposes', { token, body })).body['purposeUuid']);
const described = async (token: string, uuid: string) =>
  (await app.call('GET', `/v2/devices/${uuid}/configuration`, { token })).body;
const rollOut = async (token: string, pId: string) =>
  app.call('GET', `/v2/devices/profile/${pId}`, { token });

describe('4.3 Install device profile', () => {
  test('answers {timestamp, state: pending, pId}, and notifies every device', async () => {
    const token = await app.account();
    const [one, other] = [await app.device(token), await app.device(token)];
    app.told.length = 0;
    const body = { deviceAuthUuids: [one.uuid, other.uuid, one.uuid], purposes: [purpose(7)] };
    const answer = await install(token, body);
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      timestamp: expect.any(Number),
      state: 'pending',
      pId: expect.stringMatching(/^[0-9a-f-]{36}$/),
      warnings: [],
    });
    const pId = answer.body['pId'];
    for (const { uuid } of [one, other]) {
      expect(await described(token, uuid)).toMatchObject({
        currentProfile: {},
        pendingProfile: { pId, purposes: [{ puId: 7, name: 'purpose 7' }] },
      });
    }
    expect(app.told).toHaveLength(2);
    for (const { uuid, deviceId } of [one, other]) {
      const message = { deviceId, uuid, push: 'profile' };
      expect(app.told).toContainEqual({ channel: 'device', message });
    }
  });

  test('puts stored purposes first, in the given order, then those given in full', async () => {
    const token = await app.account();
    const device = await app.device(token);
    const [a, b] = [await store(token, purpose(1)), await store(token, purpose(2))];
    const body = {
      deviceAuthUuids: [device.uuid],
      purposeUuids: [b, a.toUpperCase()],
      purposes: [purpose(4), purpose(3)],
    };
    expect((await install(token, body)).status).toBe(200);
    const { pendingProfile } = await described(token, device.uuid);
    const { purposes } = pendingProfile as { purposes: { puId: number }[] };
    expect(purposes.map(({ puId }) => puId)).toEqual([2, 1, 4, 3]);
  });

  test('refuses stored purposes that are too large together before it reads any of them', async () => {
    const token = await app.account();
    const device = await app.device(token);
    const id = await store(token, purpose(1));
    // Refused by its stored size, so its text was not read.
    await app.db.query('update purpose set bytes = 100000 where id = $1', [id]);
    const named = { deviceAuthUuids: [device.uuid], purposeUuids: Array(6).fill(id) };
    const answer = await install(token, named);
    expect(answer.status).toBe(400);
    expect(answer.body['errors']).toEqual([
      { path: '', message: 'a profile has at most 524288 bytes, this one has 600000' },
    ]);
    const missing = { ...named, purposeUuids: [...named.purposeUuids, randomUUID()] };
    expect((await install(token, missing)).status).toBe(404);
  });

  test('installs nothing at all if a device or a purpose does not exist: 404', async () => {
    const token = await app.account();
    const device = await app.device(token);
    const stranger = await app.account();
    const foreignDevice = await app.device(stranger);
    const foreignPurpose = await store(stranger, purpose(1));
    const mine = { deviceAuthUuids: [device.uuid], purposes: [purpose(1)] };
    app.told.length = 0;
    for (const uuid of [foreignDevice.uuid, randomUUID(), 'nothing', '']) {
      const devices = { ...mine, deviceAuthUuids: [device.uuid, uuid] };
      expect((await install(token, devices)).status).toBe(404);
    }
    for (const uuid of [foreignPurpose, randomUUID(), 'nothing', '']) {
      expect((await install(token, { ...mine, purposeUuids: [uuid] })).status).toBe(404);
    }
    expect(app.told).toEqual([]);
    expect(await described(token, device.uuid)).toMatchObject({ pendingProfile: {} });
    expect(await described(stranger, foreignDevice.uuid)).toMatchObject({ pendingProfile: {} });
    const { rows } = await app.db.query('select from profile where account_id = $1', [
      Number(token),
    ]);
    expect(rows).toEqual([]);
  });

  test.each([
    ['no body', undefined, ['']],
    ['nothing in it', {}, ['/deviceAuthUuids']],
    ['no device', { deviceAuthUuids: [], purposes: [purpose(1)] }, ['/deviceAuthUuids']],
    ['no purpose', { deviceAuthUuids: ['x'] }, ['/purposeUuids']],
    [
      'no text for a device and a purpose that is none',
      { deviceAuthUuids: [1], purposes: [{ ...purpose(1), initStId: 8 }] },
      ['/deviceAuthUuids/0', '/purposes/0/initStId'],
    ],
  ])('answers 400 and lists all problems: %s', async (_name, body, expected) => {
    const answer = await install(await app.account(), body);
    expect(answer.status).toBe(400);
    expect(pathsOf(answer.body)).toEqual(expected);
  });

  test('answers 400 for purposes that do not fit together, with the place of each', async () => {
    const token = await app.account();
    const device = await app.device(token);
    const stored = await store(token, purpose(1));
    const lost = purpose(2);
    const [state] = lost.states;
    if (state?.events[0]) {
      state.events[0].actions = { engine: { gotoStId: 9, gotoPuId: 1 } };
    }
    const body = {
      deviceAuthUuids: [device.uuid],
      purposeUuids: [stored, stored],
      purposes: [lost],
    };
    const answer = await install(token, body);
    expect(answer.status).toBe(400);
    expect(pathsOf(answer.body)).toEqual([
      '/purposeUuids/1/puId',
      '/purposes/0/states/0/events/0/actions/engine/gotoStId',
    ]);
    expect(await described(token, device.uuid)).toMatchObject({ pendingProfile: {} });
  });

  test('warns of what the chosen devices cannot do', async () => {
    const token = await app.account();
    const blind = await app.device(token, { ...configuration, module: [] });
    const cold = await app.device(token);
    const answer = await install(token, {
      deviceAuthUuids: [blind.uuid],
      purposes: [purpose(1)],
    });
    expect(answer.body['warnings']).toEqual([
      {
        path: '/purposes/0/states/0/events/0',
        code: 'no-device-has-sense',
        message: expect.stringContaining('0x01'),
      },
    ]);
    const beyond = await install(token, {
      deviceAuthUuids: [cold.uuid],
      purposes: [purpose(1, 85)],
    });
    expect(beyond.status).toBe(200);
    expect(beyond.body['warnings']).toHaveLength(1);
  });

  test('supersedes an older unanswered profile, and invalidates what ingest cached', async () => {
    const token = await app.account();
    const device = await app.device(token);
    const first = await app.install(token, [device.uuid], [purpose(1)]);
    const second = await app.install(token, [device.uuid], [purpose(2)]);
    const states = async (pId: string) => (await rollOut(token, pId)).body['devices'];
    expect(await states(first)).toMatchObject([{ state: 'superseded' }]);
    expect(await states(second)).toMatchObject([{ state: 'pending' }]);
    const { rows } = await app.db.query('select version from device_state where device_id = $1', [
      device.deviceId,
    ]);
    expect(rows).toEqual([{ version: 3 }]);
  });

  test('many at once on the same devices leave exactly one pending', async () => {
    const token = await app.account();
    const devices = await Promise.all(Array.from({ length: 10 }, () => app.device(token)));
    const uuids = devices.map(({ uuid }) => uuid);
    const pIds = await Promise.all(
      Array.from({ length: 8 }, (_, n) =>
        app.install(token, n % 2 ? uuids : uuids.toReversed(), [purpose(n)]),
      ),
    );
    const { rows } = await app.db.query<{ state: string; count: number }>(
      `select state, count(*) from device_profile where profile_id = any($1) group by 1 order by 1`,
      [pIds],
    );
    expect(rows).toEqual([
      { state: 'pending', count: 10 },
      { state: 'superseded', count: 70 },
    ]);
  });

  test('answers 401 without a token', async () => {
    const body = { deviceAuthUuids: [randomUUID()], purposes: [purpose(1)] };
    expect((await app.call('POST', '/v2/devices/profile', { body })).status).toBe(401);
  });
});

describe('GET /v2/devices/profile/{pId}', () => {
  test('returns the state on each device', async () => {
    const token = await app.account();
    const [one, other] = [await app.device(token), await app.device(token)];
    const pId = await app.install(token, [one.uuid, other.uuid]);
    await app.db.query(
      `update device_profile set state = 'rejected', answer_text = 'no room' where device_id = $1`,
      [other.deviceId],
    );
    const answer = await rollOut(token, pId);
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({
      pId,
      devices: [
        { deviceAuthUuid: one.uuid, state: 'pending', ts: expect.any(Number) },
        {
          deviceAuthUuid: other.uuid,
          state: 'rejected',
          text: 'no room',
          ts: expect.any(Number),
        },
      ],
      timestamp: expect.any(Number),
    });
  });

  test('is empty once its devices are removed, and 404 for everybody else', async () => {
    const token = await app.account();
    const device = await app.device(token);
    const pId = await app.install(token, [device.uuid]);
    await app.call('DELETE', `/v2/devices/${device.uuid}`, { token });
    expect((await rollOut(token, pId)).body).toMatchObject({ pId, devices: [] });
    const stranger = await app.account();
    for (const id of [pId, randomUUID(), 'nothing']) {
      expect((await rollOut(stranger, id)).status).toBe(404);
    }
  });
});
