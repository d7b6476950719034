import { afterAll, beforeAll, expect, test } from 'vitest';
import { type App, purpose, startApp } from '../devices/app.ts';

let app: App;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.close());

const minute = 60_000;

/** A purpose with one event on 0x01, which does `actions`. */
const watching = (threshold: object, thresholds: object, actions: object = {}) => ({
  puId: 1,
  initStId: 1,
  states: [
    { stId: 1, events: [{ evId: 1, actions, causes: [{ sId: '0x01', threshold, thresholds }] }] },
  ],
});
const warm = watching({ forMs: 10 * minute }, { isGt: 5 });
const silent = (actions: object) => watching({ noneForMs: 15 * minute }, {}, actions);

/** The warnings about such a profile on so many devices that evaluate their current one themselves, and others. */
async function warningsOf(installed: object, own: number, others: number) {
  const token = await app.account();
  const devices = await Promise.all(Array.from({ length: own + others }, () => app.device(token)));
  const ids = devices.map(({ deviceId }) => deviceId);
  const deviceAuthUuids = devices.map(({ uuid }) => uuid);
  await app.install(token, deviceAuthUuids, [purpose(1)]);
  await app.db.query(
    `update device_profile set state = 'current',
            engine = case when device_id = any($2) then 'device' else 'service' end
      where device_id = any($1)`,
    [ids, ids.slice(0, own)],
  );
  const body = { deviceAuthUuids, purposes: [installed] };
  const answer = await app.call('POST', '/v2/devices/profile', { token, body });
  expect(answer.status).toBe(200);
  return answer.body['warnings'];
}

test('a member about time causes one warning if a device evaluates for itself', async () => {
  const path = '/purposes/0/states/0/events/0/causes/0/threshold/forMs';
  const message = 'a chosen device evaluates its profiles itself, and may not support forMs';
  expect(await warningsOf(warm, 1, 1)).toEqual([
    { path, code: 'needs-service-engine', message: expect.stringContaining(message) },
  ]);
  const several = '2 of the chosen devices evaluate their profiles themselves';
  expect(await warningsOf(warm, 2, 0)).toEqual([
    { path, code: 'needs-service-engine', message: expect.stringContaining(several) },
  ]);
});

test('but not if the service evaluates, nor without such members', async () => {
  expect(await warningsOf(warm, 0, 2)).toEqual([]);
  expect(await warningsOf(purpose(1), 2, 0)).toEqual([]);
});

test('groups of causes are such a member, unless all wait for silence', async () => {
  const grouped = (cause: object) => {
    const groups = [[cause], [{ sId: '0x01', threshold: { noneForMs: minute } }]];
    return { puId: 1, initStId: 1, states: [{ stId: 1, events: [{ evId: 1, anyOf: groups }] }] };
  };
  const above = grouped({ sId: '0x01', thresholds: { isGt: 5 } });
  expect(await warningsOf(above, 1, 0)).toEqual([
    {
      path: '/purposes/0/states/0/events/0/anyOf',
      code: 'needs-service-engine',
      message: expect.stringContaining('may not support anyOf'),
    },
  ]);
  const silences = grouped({ sId: '0x02', threshold: { noneForMs: 2 * minute } });
  expect(await warningsOf(silences, 1, 0)).toEqual([]);
});

test('the service watches silence in any case, but does not move such a device', async () => {
  expect(await warningsOf(silent({}), 1, 0)).toEqual([]);
  const moving = { ...silent({ engine: { gotoStId: 1 } }) };
  expect(await warningsOf(moving, 1, 0)).toEqual([
    {
      path: '/purposes/0/states/0/events/0/causes/0/threshold/noneForMs',
      code: 'needs-service-engine',
      message: expect.stringContaining('may not support noneForMs'),
    },
  ]);
});
