import { afterEach, expect, it } from 'vitest';
import { configuration } from '../journeys/app.ts';
import { readEvents, type Reading } from '../events/sse.ts';
import { addDevice, addWebhook, listAlarms, openHouse, received, send } from './house.ts';
import { tooWarm, whatEventsSay } from './house.ts';

const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

const minute = 60_000;

it('three bad values 20 minutes old, then thirty live ones: one message, and the old firings are too old', async () => {
  const house = await openHouse(ends, { PUBLIC_URL: 'https://sensorium.example.org/' });
  await addWebhook(house);
  const freezer = await addDevice(house, [tooWarm()]);
  const now = Date.now();
  for (let n = 0; n < 3; n += 1) await send(freezer, 9, now - 20 * minute + n);
  expect(await whatEventsSay(house, freezer)).toEqual(['too-old', 'too-old', 'too-old']);
  expect(await listAlarms(house)).toMatchObject([
    { state: 'open', told: 'none', notNotified: 'too-old', firings: 3, sinceTs: now - 20 * minute },
  ]);
  for (let n = 0; n < 30; n += 1) await send(freezer, 9 + n / 100, Date.now());
  await house.receiver.request();
  const say = await whatEventsSay(house, freezer);
  expect(say.slice(-9)).toEqual(Array.from({ length: 9 }, () => 'same-episode'));
  await expect.poll(async () => (await listAlarms(house))[0]?.told).toBe('told');
  const [alarm] = await listAlarms(house);
  expect(alarm).toMatchObject({
    firings: 33,
    notNotified: null,
    eventName: 'too warm',
    stateName: 'cold',
    purposeName: 'freezer',
    deviceName: configuration.device.name,
    deviceAuthUuid: freezer.uuid,
    values: [{ sId: '0x01', val: 9.29 }],
    deliveries: [{ kind: 'webhook', type: 'opened', state: 'sent' }],
  });
  const path = `/v2/alarms/${alarm?.alarmId}`;
  expect(await house.app.call('GET', path)).toMatchObject({ alarm });
  type Listed = { events: { eventId: string; notified?: boolean }[] };
  const query = `/v2/events?devices=${freezer.uuid}&senses=0x01`;
  const { events } = await house.app.call<Listed>('GET', query);
  const told = events.filter(({ notified }) => notified);
  expect(received(house)).toMatchObject([
    { data: { eventId: told[0]?.eventId, url: `https://sensorium.example.org${path}` } },
  ]);
});

it('nobody to notify at first: says so; acknowledged, it is not announced; snoozed, it is announced when that ends', async () => {
  const house = await openHouse(ends);
  const { app } = house;
  const freezer = await addDevice(house, [tooWarm()]);
  await send(freezer, 9);
  expect(await whatEventsSay(house, freezer)).toEqual(['no-recipient']);
  const [{ alarmId } = { alarmId: 0 }] = await listAlarms(house, '?state=open');
  const post = (what: string, body?: object) =>
    app.call('POST', `/v2/alarms/${alarmId}/${what}`, body);
  await post('acknowledge');
  await post('acknowledge');
  await addWebhook(house);
  expect(await listAlarms(house, '?state=open')).toEqual([]);
  expect(await listAlarms(house, '?state=acknowledged')).toMatchObject([{ alarmId }]);
  await send(freezer, 10);
  expect((await whatEventsSay(house, freezer)).at(-1)).toBe('acknowledged');
  const untilTs = Date.now() + 3_000;
  await post('snooze', { untilTs, reason: 'defrosting' });
  expect(await listAlarms(house, '?state=open')).toMatchObject([
    { alarmId, acknowledgedTs: null, snoozed: { untilTs, reason: 'defrosting' } },
  ]);
  await send(freezer, 11);
  expect((await whatEventsSay(house, freezer)).at(-1)).toBe('snoozed');
  await house.receiver.request();
  expect(Date.now()).toBeGreaterThanOrEqual(untilTs);
  expect(received(house)).toMatchObject([{ type: 'alarm.opened', data: { alarmId } }]);
  expect(received(house)[0]?.data).not.toHaveProperty('url');
});

it('a person who closes an alarm ends the episode: the next firing opens another alarm, which is announced', async () => {
  const house = await openHouse(ends);
  await addWebhook(house);
  const freezer = await addDevice(house, [tooWarm()]);
  await send(freezer, 9);
  const [first] = await listAlarms(house);
  await house.app.call('POST', `/v2/alarms/${first?.alarmId}/close`, { force: true });
  await house.app.call('POST', `/v2/alarms/${first?.alarmId}/close`);
  await send(freezer, 10);
  expect(await whatEventsSay(house, freezer)).toEqual(['told', 'told']);
  expect(await listAlarms(house)).toMatchObject([
    { state: 'open' },
    { alarmId: first?.alarmId, state: 'closed', closedBy: 'person' },
  ]);
  const { entries } = await house.app.call<{ entries: object[] }>(
    'GET',
    '/v2/accounts/audit?kinds=alarm-closed',
  );
  expect(entries).toMatchObject([
    { by: 'session', details: { alarmId: first?.alarmId, deviceAuthUuid: freezer.uuid } },
  ]);
});

it('ends with a disagreeing value, another profile, and a sense that REST or the device removes', async () => {
  const house = await openHouse(ends);
  const { app } = house;
  const freezer = await addDevice(house, [tooWarm()]);
  const deviceAuthUuids = [freezer.uuid];
  const reinstall = () =>
    app.call('POST', '/v2/devices/profile', { deviceAuthUuids, purposes: [tooWarm()] });
  await send(freezer, 9);
  await send(freezer, 5);
  await send(freezer, 9);
  await reinstall();
  await send(freezer, 9);
  const without = {
    ...configuration,
    module: [{ moduleId: 'climate', senses: [{ sId: '0x02' }] }],
  };
  await app.call('PUT', `/v2/devices/${freezer.uuid}/configuration`, without);
  await freezer.device.publish('up/configuration', configuration);
  await send(freezer, 9.5);
  await freezer.device.publish('up/configuration', without);
  expect((await listAlarms(house)).map(({ closedBy }) => closedBy)).toEqual([
    'configuration',
    'configuration',
    'profile',
    'cleared',
  ]);
});

it('a mute suppresses notifications of a device until it ends', async () => {
  const house = await openHouse(ends);
  await addWebhook(house);
  const freezer = await addDevice(house, [tooWarm()]);
  const path = `/v2/devices/${freezer.uuid}/mute`;
  await house.app.call('PUT', path, { untilTs: Date.now() + 3_600_000, reason: 'cleaning' });
  await send(freezer, 9);
  expect(await whatEventsSay(house, freezer)).toEqual(['snoozed']);
  expect(await listAlarms(house)).toMatchObject([{ muted: { reason: 'cleaning' }, told: 'none' }]);
  await house.app.call('DELETE', path);
  await house.receiver.request();
  expect(received(house)).toMatchObject([{ type: 'alarm.opened' }]);
});

it('streams send changes of alarms as an event type of their own, resumable; removing a device sends one too', async () => {
  const house = await openHouse(ends);
  const { app, service } = house;
  const freezer = await addDevice(house, [tooWarm({}, { eventLog: false })]);
  const { accountAuthToken: token } = await app.call<{ accountAuthToken: string }>(
    'POST',
    '/v2/accounts/login',
    { email: app.email, password: 'correct horse battery' },
  );
  const stream = await readEvents(`${service.url}/v2/events/stream`, token);
  ends.push(async () => stream.close());
  const from = stream.lastId();
  await send(freezer, 9);
  await send(freezer, 5);
  await send(freezer, 9);
  const changesOf = ({ messages }: Reading) =>
    messages.filter(({ event }) => event === 'alarm').map(({ data }) => data);
  await expect.poll(() => changesOf(stream).length, { timeout: 60_000 }).toBe(3);
  await app.call('DELETE', `/v2/devices/${freezer.uuid}`);
  await expect.poll(() => changesOf(stream).length, { timeout: 60_000 }).toBe(4);
  const messages = changesOf(stream);
  expect(messages.map((data) => data?.['change'])).toEqual([
    'opened',
    'closed',
    'opened',
    'removed',
  ]);
  expect(messages[0]).toMatchObject({
    deviceAuthUuid: freezer.uuid,
    alarm: { state: 'open', firings: 1, told: 'none', notNotified: 'no-recipient' },
  });
  expect(messages[3]).toEqual({
    timestamp: expect.any(Number) as number,
    change: 'removed',
    alarmId: messages[2]?.['alarmId'] as number,
    deviceAuthUuid: freezer.uuid,
  });
  const again = await readEvents(`${service.url}/v2/events/stream`, token, from);
  ends.push(async () => again.close());
  await expect.poll(() => changesOf(again).at(-1)?.['change'], { timeout: 60_000 }).toBe('removed');
  expect(await listAlarms(house)).toEqual([]);
});

it('reports on Monday and on Tuesday, with the state reported before or after: announced twice, none stays open', async () => {
  const house = await openHouse(ends);
  await addWebhook(house);
  const freezer = await addDevice(house, [tooWarm({ engine: { gotoStId: 2 } })]);
  const { device } = freezer;
  await device.subscribe('down/profile');
  const { pId } = await device.receive('down/profile');
  await device.publish('up/profile', { pId, state: 'current', engine: 'device' });
  const report = (ts: number) =>
    device.publish('up/events', {
      cause: {
        engine: { pId, puId: 1, stId: 1, evId: 1, ts },
        senses: [{ sId: '0x01', val: 9, ts }],
      },
    });
  const state = (stId: number, ts: number) => device.publish('up/state', { puId: 1, stId, ts });
  const now = Date.now();
  await report(now);
  await report(now);
  await state(2, now + 1);
  await state(1, now + 2);
  await state(2, now + 3);
  await report(now + 4);
  await state(1, now + 5);
  const alarms = await listAlarms(house);
  expect(alarms.map(({ closedBy, firings }) => [closedBy, firings])).toEqual([
    ['left-state', 1],
    ['left-state', 1],
  ]);
  await expect.poll(() => received(house).length).toBe(2);
});
