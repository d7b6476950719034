import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { makeKey } from '../api-keys/open-key.ts';
import type { App, Registration } from '../journeys/app.ts';
import { configuration } from '../journeys/app.ts';
import { connectDevice } from '../journeys/device.ts';
import { testService, type TestService } from '../journeys/service.ts';
import { canOpenRedis, openRedis, type OpenRedis } from '../support/redis.ts';
import { addDevice, openAccount, openStream } from './readers.ts';

type Told = { deviceAuthUuid: string; presence: string; lastSeenTs: number };

const register = (app: App, more: object = {}) =>
  app.call<Registration>('POST', '/v2/devices', { ...configuration, ...more });
const makeUrl = async (app: App, body: object = { kinds: ['devices'] }) =>
  (await app.call<{ url: string }>('POST', '/v2/streams', body)).url;

describe.skipIf(!canOpenRedis)('presence', () => {
  let redis: OpenRedis;
  let first: TestService;
  let second: TestService;

  beforeAll(async () => {
    redis = await openRedis();
    first = await testService({ REDIS_URL: redis.url });
    second = await testService({ REDIS_URL: redis.url, DATABASE_URL: first.databaseUrl });
  });
  afterAll(async () => {
    await second?.close();
    await first?.close();
    await redis?.close();
  });

  const open = async (app: App, body?: object, lastEventId?: string) =>
    openStream(second.url + (await makeUrl(app, body)), null, lastEventId);
  const pollOf = ({ deviceAuthUuid: uuid, deviceAuthToken: token }: Registration, wait: number) => {
    const leaving = new AbortController();
    const headers = { Authorization: `Bearer ${token}` };
    const url = `${first.url}/devices/${uuid}/down?wait=${wait}&topics=display`;
    const answer = fetch(url, { headers, signal: leaving.signal });
    return { answer, leave: () => leaving.abort() };
  };
  const post = ({ deviceAuthUuid: uuid, deviceAuthToken: token }: Registration) =>
    fetch(`${first.url}/devices/${uuid}/up/measurements`, {
      method: 'POST',
      headers: { Authorization: `Bearer ${token}`, 'Content-Type': 'application/json' },
      body: '[{"sId": "0x01", "val": 21}]',
    });

  test('is reported by another process to those who may know', async () => {
    const { app } = await openAccount(first.url);
    const stranger = await openAccount(first.url);
    const foreign = await open(stranger.app);
    const stream = await open(app);
    const registration = await register(app);
    const device = await connectDevice(registration);
    const [online] = (await stream.untilNamed('device', 1)) as Told[];
    expect(online).toMatchObject({ deviceAuthUuid: device.uuid, presence: 'online' });
    expect(online?.lastSeenTs).toBeGreaterThan(1_700_000_000_000);
    await device.end();
    const [, offline] = (await stream.untilNamed('device', 2)) as Told[];
    expect(offline).toMatchObject({ deviceAuthUuid: device.uuid, presence: 'offline' });
    expect(foreign.named('device')).toEqual([]);
    foreign.close();
    stream.close();
  });

  test('is reported only for devices that the filter, or the key, selects', async () => {
    const { app } = await openAccount(first.url);
    const cellar = await register(app);
    const attic = await register(app);
    const path = `/v2/devices/${cellar.deviceAuthUuid}/labels`;
    await app.call('PUT', path, { labels: ['cellar'] });
    const all = await open(app);
    const some = await open(app, { kinds: ['devices'], filters: { label: 'cellar' } });
    const one = await connectDevice(attic);
    await all.untilNamed('device', 1);
    const two = await connectDevice(cellar);
    expect(await some.untilNamed('device', 1)).toMatchObject([{ deviceAuthUuid: two.uuid }]);
    await one.end();
    await two.end();
    all.close();
    some.close();
  });

  test('requires devices:read of a key, whatever else it asks for', async () => {
    const { app } = await openAccount(first.url);
    const ask = async (scopes: string[], kinds: string[]) => {
      const { key } = await makeKey(app, { scopes });
      const answer = await fetch(`${first.url}/v2/streams`, {
        method: 'POST',
        headers: { Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
        body: JSON.stringify({ kinds }),
      });
      return answer.status;
    };
    expect(await ask(['data:read'], ['devices', 'events'])).toBe(403);
    expect(await ask(['devices:read'], ['devices'])).toBe(403);
    expect(await ask(['data:read'], ['events'])).toBe(200);
    expect(await ask(['data:read', 'devices:read'], ['devices'])).toBe(200);
    expect(await makeUrl(app)).toContain('ticket=');
  });

  test('makes a reader that returns request the list again', async () => {
    const { app } = await openAccount(first.url);
    const stream = await open(app, { kinds: ['devices', 'events'] });
    await expect.poll(() => stream.lastId()).toMatch(/d=1$/);
    stream.close();
    const resumed = await open(app, { kinds: ['devices'] }, 'd=1');
    expect(await resumed.untilNamed('devices', 1)).toEqual([{ reason: 'missed' }]);
    resumed.close();
  });

  test('includes devices added, labelled, reconfigured or removed by another process', async () => {
    const { app } = await openAccount(first.url);
    const stranger = await openAccount(first.url);
    const foreign = await open(stranger.app);
    // A new stream for each, because one that was notified is not notified again within two seconds.
    const tells = async <T>(change: () => Promise<T>): Promise<T> => {
      const stream = await open(app);
      const answer = await change();
      expect(await stream.untilNamed('devices', 1)).toEqual([{ reason: 'changed' }]);
      stream.close();
      return answer;
    };
    const { deviceAuthUuid } = await tells(() => register(app));
    const path = `/v2/devices/${deviceAuthUuid}`;
    await tells(() => app.call('POST', '/v2/devices/batch', { devices: [configuration] }));
    await tells(() => app.call('PUT', `${path}/labels`, { labels: ['new'] }));
    const renamed = { ...configuration, name: 'Renamed' };
    await tells(() => app.call('PUT', `${path}/configuration`, renamed));
    await tells(() => app.call('DELETE', path));
    const rest = { action: 'remove', filter: {} };
    await tells(() => app.call('POST', '/v2/devices/actions', rest));
    expect(foreign.named('devices')).toEqual([]);
    foreign.close();
  });

  test('of a device over HTTP is online while its poll waits, and intermittent otherwise', async () => {
    const { app } = await openAccount(first.url);
    const stream = await open(app);
    const registration = await register(app, { protocol: 'http' });
    type Listed = { presence: string; transport: string; connected: boolean; lastSeenTs: number };
    const list = async (query = '') =>
      app.call<{ devices: Listed[]; counts: Record<string, number> }>(
        'GET',
        `/v2/devices?counts=true${query}`,
      );
    expect((await list()).devices).toMatchObject([
      { presence: 'intermittent', transport: 'http', connected: false, lastSeenTs: null },
    ]);
    expect((await post(registration)).status).toBe(200);
    const poll = pollOf(registration, 60);
    expect(await stream.untilNamed('device', 1)).toMatchObject([{ presence: 'online' }]);
    expect((await list('&presence=online')).devices).toMatchObject([
      { presence: 'online', transport: 'http', connected: true },
    ]);
    poll.leave();
    await expect(poll.answer).rejects.toThrow('aborted');
    expect((await stream.untilNamed('device', 2))[1]).toMatchObject({ presence: 'intermittent' });
    const { devices, counts } = await list('&presence=intermittent');
    expect(devices).toMatchObject([{ presence: 'intermittent', connected: false }]);
    expect(devices[0]?.lastSeenTs).toBeGreaterThan(1_700_000_000_000);
    expect(counts).toMatchObject({ all: 1, online: 0, offline: 0, intermittent: 1, matching: 1 });
    expect((await list('&presence=offline')).devices).toEqual([]);
    // As before `presence` existed.
    expect((await list('&online=false')).devices).toHaveLength(1);
    stream.close();
  });

  test('of a device registered for MQTT that comes over HTTP is intermittent, and offline before', async () => {
    const { app } = await openAccount(first.url);
    const registration = await register(app);
    const uuid = registration.deviceAuthUuid;
    const get = async () =>
      (await app.call<{ device: object }>('GET', `/v2/devices/${uuid}`)).device;
    expect(await get()).toMatchObject({ presence: 'offline', transport: 'mqtt' });
    // A poll is written at once, a message within half a minute.
    const poll = pollOf(registration, 60);
    await expect.poll(get, { timeout: 60_000 }).toMatchObject({ presence: 'online' });
    poll.leave();
    await expect(poll.answer).rejects.toThrow('aborted');
    await expect
      .poll(get, { timeout: 60_000 })
      .toMatchObject({ presence: 'intermittent', transport: 'http', protocol: 'mqtt' });
    const device = await connectDevice(registration);
    await expect
      .poll(get, { timeout: 60_000 })
      .toMatchObject({ presence: 'online', transport: 'mqtt' });
    await device.end();
    await expect.poll(get, { timeout: 60_000 }).toMatchObject({ presence: 'offline' });
  });

  test("of a stopping process's devices ends", async () => {
    const { app } = await openAccount(first.url);
    const third = await testService({ REDIS_URL: redis.url, DATABASE_URL: first.databaseUrl });
    const here = await openAccount(third.url);
    const device = await addDevice(here.app);
    const stream = await open(here.app);
    await third.close();
    // Either the device is named, or the reader is told to request the list again.
    await expect
      .poll(() => [...stream.named('device'), ...stream.named('devices')].length, {
        timeout: 60_000,
      })
      .toBeGreaterThan(0);
    await device.end();
    expect(app.email).not.toBe(here.app.email);
    stream.close();
  });
});
