import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type { Sql } from '../../src/db/sql.ts';
import {
  createDownlinks,
  type Downlinks,
  saveProfileAnswers,
} from '../../src/profiles/downlinks.ts';
import { type App, configuration, purpose, startApp } from '../devices/app.ts';

let app: App;
let token: string;
let downlinks: Downlinks;
let queries = 0;
beforeAll(async () => {
  app = await startApp();
  token = await app.account();
  const db = {
    query: (query: string, values?: unknown[]) => {
      queries += 1;
      return app.db.query(query, values);
    },
  } as Sql;
  downlinks = createDownlinks({ db, bus: app.bus });
});
afterAll(() => app.close());

type Device = Awaited<ReturnType<App['device']>>;
type StoredAnswer = Parameters<typeof saveProfileAnswers>[1][number];
const all = ['profile', 'configuration', 'state', 'display', 'errors', 'time'] as const;
const becomesCurrent = ({ deviceId }: Device, pId: string, rest: Partial<StoredAnswer> = {}) =>
  saveProfileAnswers(app.db, [{ deviceId, pId, state: 'current', ts: Date.now(), ...rest }]);
const states = async (pId: string) => {
  const { body } = await app.call('GET', `/v2/devices/profile/${pId}`, { token });
  return (body['devices'] as { state: string; text?: string }[]).map(({ state, text }) =>
    text === undefined ? state : `${state}: ${text}`,
  );
};
const answers = async ({ deviceId }: Device) => {
  const { rows } = await app.db.query<{ answers_profiles: boolean; version: number }>(
    'select answers_profiles, version from device_state where device_id = $1',
    [deviceId],
  );
  return rows[0];
};

describe('on subscribe', () => {
  test('configuration and state are sent, and a profile if one is pending', async () => {
    const device = await app.device(token);
    const ts = expect.any(Number);
    const plain = [
      { topic: 'configuration', payload: { ...configuration, ts } },
      { topic: 'state', payload: { puId: 0, stId: 0, ts } },
    ];
    expect(await downlinks.subscribed(device, [...all])).toEqual(plain);
    const pId = await app.install(token, [device.uuid], [purpose(4), purpose(5)]);
    const purposes = [{ puId: 4 }, { puId: 5 }];
    expect(await downlinks.subscribed(device, ['profile'])).toMatchObject([
      { topic: 'profile', pId, payload: { pId, purposes, ts } },
    ]);
    expect(await downlinks.subscribed(device, ['state'])).toEqual([plain[1]]);
    expect(await downlinks.subscribed(device, ['display', 'errors'])).toEqual([]);
  });

  test('to profile, the device answers for itself from now on, and ingest reads its state again', async () => {
    const device = await app.device(token);
    await downlinks.subscribed(device, ['configuration', 'state']);
    expect(await answers(device)).toEqual({ answers_profiles: false, version: 1 });
    await downlinks.subscribed(device, ['profile']);
    expect(await answers(device)).toEqual({ answers_profiles: true, version: 2 });
    await downlinks.subscribed(device, ['profile']);
    expect(await answers(device)).toEqual({ answers_profiles: true, version: 2 });
  });

  test('a plain sensor gets its current profile, which it never received, until it has acknowledged it', async () => {
    const device = await app.device(token);
    const pId = await app.install(token, [device.uuid]);
    await becomesCurrent(device, pId);
    const offered = await downlinks.subscribed(device, ['profile']);
    expect(offered).toMatchObject([{ topic: 'profile', pId }]);
    // The connection broke before it was acknowledged.
    expect(await downlinks.subscribed(device, ['profile'])).toEqual(offered);
    for (const message of offered) await downlinks.delivered(device, message);
    expect(await downlinks.subscribed(device, ['profile'])).toEqual([]);
    expect(await states(pId)).toEqual(['current']);
  });

  test('a newer pending profile goes before the current one', async () => {
    const device = await app.device(token);
    await becomesCurrent(device, await app.install(token, [device.uuid]));
    const pId = await app.install(token, [device.uuid]);
    expect(await downlinks.subscribed(device, ['profile'])).toMatchObject([{ pId }]);
  });

  test('for many devices at once, a few queries read what is due', async () => {
    const devices = await Promise.all(Array.from({ length: 50 }, () => app.device(token)));
    queries = 0;
    const sent = await Promise.all(
      devices.map((device) => downlinks.subscribed(device, ['state', 'configuration'])),
    );
    expect(sent.every((messages) => messages.length === 2)).toBe(true);
    expect(queries).toBe(1);
  });

  test('if the device was removed meanwhile: device-gone', async () => {
    const device = await app.device(token);
    await app.call('DELETE', `/v2/devices/${device.uuid}`, { token });
    const gone = { code: 'device-gone' };
    await expect(downlinks.subscribed(device, ['profile'])).rejects.toMatchObject(gone);
    await expect(downlinks.due(device, 'profile')).rejects.toMatchObject(gone);
  });
});

describe('after a notice', () => {
  test('the pending profile is due, or the configuration, and nothing else', async () => {
    const device = await app.device(token);
    expect(await downlinks.due(device, 'profile')).toEqual([]);
    const pId = await app.install(token, [device.uuid]);
    expect(await downlinks.due(device, 'profile')).toMatchObject([{ topic: 'profile', pId }]);
    const body = { device: { name: 'new' }, module: [] };
    await app.call('PUT', `/v2/devices/${device.uuid}/configuration`, { token, body });
    expect(await downlinks.due(device, 'configuration')).toEqual([
      { topic: 'configuration', payload: { ...body, ts: expect.any(Number) } },
    ]);
  });

  test('a device that asks gets its profile wherever it is connected', async () => {
    const device = await app.device(token);
    app.told.length = 0;
    await downlinks.handOver(device);
    const { deviceId, uuid } = device;
    expect(app.told).toEqual([{ channel: 'device', message: { deviceId, uuid, push: 'profile' } }]);
  });
});

describe('sending a profile', () => {
  test('pending → sent with the acknowledgement; without an answer it is sent again', async () => {
    const device = await app.device(token);
    const pId = await app.install(token, [device.uuid]);
    expect(await states(pId)).toEqual(['pending']);
    const [message] = await downlinks.subscribed(device, ['profile']);
    if (!message) throw new Error('nothing was due');
    await downlinks.delivered(device, message);
    expect(await states(pId)).toEqual(['sent']);
    expect(await downlinks.subscribed(device, ['profile'])).toEqual([message]);
    const configured = await app.call('GET', `/v2/devices/${device.uuid}/configuration`, { token });
    expect(configured.body).toMatchObject({ pendingProfile: { pId } });
  });

  test('a late acknowledgement undoes nothing', async () => {
    const device = await app.device(token);
    const pId = await app.install(token, [device.uuid]);
    const [message] = await downlinks.subscribed(device, ['profile']);
    await becomesCurrent(device, pId);
    if (message) await downlinks.delivered(device, message);
    expect(await states(pId)).toEqual(['current']);
    await downlinks.delivered(device, { topic: 'state', payload: {} });
  });

  test('current replaces the previous one; rejected keeps its text and leaves the current one', async () => {
    const device = await app.device(token);
    const first = await app.install(token, [device.uuid], [purpose(1)]);
    await becomesCurrent(device, first);
    const second = await app.install(token, [device.uuid], [purpose(2)]);
    const { deviceId } = device;
    const no = { deviceId, pId: second, state: 'rejected', text: 'no\0room', ts: 5 } as const;
    await saveProfileAnswers(app.db, [no]);
    expect(await states(second)).toEqual(['rejected: no\uFFFDroom']);
    expect(await states(first)).toEqual(['current']);
    const third = await app.install(token, [device.uuid], [purpose(3)]);
    await becomesCurrent(device, third, { engine: 'device' });
    expect(await states(first)).toEqual(['replaced']);
    expect(await states(third)).toEqual(['current']);
    const evaluation = await app.call('GET', `/v2/devices/${device.uuid}/evaluation`, { token });
    expect(evaluation.body).toMatchObject({ engine: 'device' });
  });

  test('answers of many devices share a statement; of several for one profile the last one counts', async () => {
    const devices = await Promise.all(Array.from({ length: 5 }, () => app.device(token)));
    const pId = await app.install(
      token,
      devices.map(({ uuid }) => uuid),
    );
    await saveProfileAnswers(app.db, [
      ...devices.map(({ deviceId }) => ({ deviceId, pId, state: 'current' as const, ts: 1 })),
      { deviceId: devices[0]?.deviceId ?? 0, pId, state: 'rejected', text: 'after all', ts: 2 },
    ]);
    const after = await states(pId);
    expect(after).toContain('rejected: after all');
    expect(after.filter((state) => state === 'current')).toHaveLength(4);
  });
});
