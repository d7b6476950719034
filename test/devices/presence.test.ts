import { afterAll, beforeAll, expect, test } from 'vitest';
import type { PresenceNotice } from '../../src/bus/bus.ts';
import type { Sql } from '../../src/db/sql.ts';
import { startPresence } from '../../src/devices/presence.ts';
import { type App, startApp } from './app.ts';

let app: App;
let token: string;
beforeAll(async () => {
  app = await startApp();
  token = await app.account();
});
afterAll(() => app.close());

type Listed = { uuid: string; connected: boolean; lastSeenTs: number | null };
const listed = async (uuid: string) => {
  const { body } = await app.call('GET', '/v2/devices', { token });
  return (body['devices'] as Listed[]).find((device) => device.uuid === uuid);
};

const options = {
  connectorId: 1,
  clock: Date.now,
  onError: () => {},
  tell: () => {},
  writeIntervalMs: 60_000,
};

test('a device is connected as long as one of its connections is', async () => {
  const device = await app.device(token);
  let now = 1_700_000_000_000;
  const presence = await startPresence({ ...options, db: app.db, clock: () => now });
  presence.presence(device, 'connected');
  presence.presence(device, 'connected');
  presence.presence(device, 'disconnected');
  await presence.flush();
  expect(await listed(device.uuid)).toMatchObject({ connected: true, lastSeenTs: now });
  now += 5_000;
  presence.presence(device, 'seen');
  await presence.flush();
  expect(await listed(device.uuid)).toMatchObject({ connected: true, lastSeenTs: now });
  presence.presence(device, 'disconnected');
  await presence.flush();
  expect(await listed(device.uuid)).toMatchObject({ connected: false, lastSeenTs: now });
  await presence.close();
});

test('is written by itself a little later, and never while a message is processed', async () => {
  const device = await app.device(token);
  let writes = 0;
  const counted = {
    query: (query: string, values?: unknown[]) => {
      writes += 1;
      return app.db.query(query, values);
    },
  } as Sql;
  const presence = await startPresence({ ...options, db: counted, writeIntervalMs: 5 });
  writes = 0;
  presence.presence(device, 'connected');
  for (let n = 0; n < 1_000; n += 1) presence.presence(device, 'seen');
  await expect.poll(() => listed(device.uuid)).toMatchObject({ connected: true });
  expect(writes).toBe(1);
  await presence.close();
  expect(await listed(device.uuid)).toMatchObject({ connected: false });
});

test('what a killed process left is cleared at the start, on its own connector only', async () => {
  const [here, there] = [await app.device(token), await app.device(token)];
  const killed = await startPresence({ ...options, db: app.db });
  const other = await startPresence({ ...options, connectorId: 2, db: app.db });
  killed.presence(here, 'connected');
  other.presence(there, 'connected');
  await killed.flush();
  await other.flush();
  expect(await listed(here.uuid)).toMatchObject({ connected: true });
  const next = await startPresence({ ...options, db: app.db });
  expect(await listed(here.uuid)).toMatchObject({ connected: false });
  expect(await listed(there.uuid)).toMatchObject({ connected: true });
  await Promise.all([killed.close(), other.close(), next.close()]);
});

test('leaving one connector does not undo having come to another', async () => {
  const device = await app.device(token);
  const one = await startPresence({ ...options, db: app.db });
  const two = await startPresence({ ...options, connectorId: 2, db: app.db });
  one.presence(device, 'connected');
  await one.flush();
  two.presence(device, 'connected');
  await two.flush();
  one.presence(device, 'disconnected');
  await one.flush();
  expect(await listed(device.uuid)).toMatchObject({ connected: true });
  await Promise.all([one.close(), two.close()]);
});

test('a device without a visible connection is where it was heard last', async () => {
  const device = await app.device(token);
  let now = 1_700_000_000_000;
  const clock = () => now;
  const one = await startPresence({ ...options, db: app.db, clock });
  const two = await startPresence({ ...options, connectorId: 2, db: app.db, clock });
  const connectorOf = async () => {
    const { rows } = await app.db.query<{ connector_id: number }>(
      'select connector_id from presence where device_id = $1',
      [device.deviceId],
    );
    return rows[0]?.connector_id;
  };
  one.presence(device, 'seen');
  now += 1_000;
  two.presence(device, 'seen');
  await two.flush();
  await one.flush();
  expect(await connectorOf()).toBe(2);
  now += 1_000;
  one.presence(device, 'seen');
  await one.flush();
  expect(await connectorOf()).toBe(1);
  two.presence(device, 'connected');
  now += 1_000;
  one.presence(device, 'seen');
  await two.flush();
  await one.flush();
  expect(await connectorOf()).toBe(2);
  await Promise.all([one.close(), two.close()]);
});

test('a failed write is repeated, and a removed device is no obstacle', async () => {
  const [gone, stays] = [await app.device(token), await app.device(token)];
  let fails = true;
  const failing = {
    query: (query: string, values?: unknown[]) =>
      fails && query.includes('insert')
        ? Promise.reject(new Error('no'))
        : app.db.query(query, values),
  } as Sql;
  const presence = await startPresence({ ...options, db: failing });
  presence.presence(gone, 'connected');
  presence.presence(stays, 'connected');
  await expect(presence.flush()).rejects.toThrow('no');
  fails = false;
  await app.call('DELETE', `/v2/devices/${gone.uuid}`, { token });
  await presence.flush();
  expect(await listed(stays.uuid)).toMatchObject({ connected: true });
  await presence.close();
});

test('connects and disconnects are announced once they are written, with the resulting rows', async () => {
  const device = await app.device(token);
  const told: PresenceNotice[] = [];
  const tell = (accounts: PresenceNotice[]) => void told.push(...accounts);
  const one = await startPresence({ ...options, db: app.db, tell });
  const two = await startPresence({ ...options, connectorId: 2, db: app.db, tell });
  one.presence(device, 'connected');
  await one.flush();
  two.presence(device, 'connected');
  await two.flush();
  one.presence(device, 'seen');
  one.presence(device, 'disconnected');
  await one.flush();
  const { deviceId, uuid, accountId } = device;
  const at = (connectorId: number) => ({
    accountId,
    devices: [
      { deviceId, uuid, connected: true, connectorId, seenTs: expect.any(Number) as number },
    ],
  });
  expect(told).toEqual([at(1), at(2), at(2)]);
  told.length = 0;
  two.presence(device, 'seen');
  await two.flush();
  expect(told).toEqual([]);
  await two.close();
  expect(told).toEqual([{ accountId, devices: null }]);
  await one.close();
});

test('if more than a hundred devices of an account change at once, none is named', async () => {
  const { accountId } = await app.device(token);
  const { rows: devices } = await app.db.query<{ deviceId: number; uuid: string }>(
    `insert into device (account_id, connector_id, configuration)
     select $1, 1, '{}' from generate_series(1, 101)
     returning id as "deviceId", uuid`,
    [accountId],
  );
  const told: PresenceNotice[] = [];
  const tell = (accounts: PresenceNotice[]) => void told.push(...accounts);
  const presence = await startPresence({ ...options, db: app.db, tell });
  const move = async (some: typeof devices, change: 'connected' | 'disconnected') => {
    for (const device of some) presence.presence({ ...device, accountId }, change);
    await presence.flush();
  };
  await move(devices.slice(0, 100), 'connected');
  expect(told.map((one) => one.devices?.length)).toEqual([100]);
  await move(devices.slice(100), 'connected');
  await move(devices, 'disconnected');
  expect(told.slice(1).map((one) => one.devices?.length ?? null)).toEqual([1, null]);
  await presence.close();
});

test('a device heard after a silence is written soon, and not announced', async () => {
  const device = await app.device(token);
  const told: PresenceNotice[] = [];
  const tell = (accounts: PresenceNotice[]) => void told.push(...accounts);
  const presence = await startPresence({ ...options, db: app.db, tell, writeIntervalMs: 5 });
  presence.presence(device, 'seen');
  await expect
    .poll(() => listed(device.uuid))
    .toMatchObject({ connected: false, lastSeenTs: expect.any(Number) as number });
  expect(told).toEqual([]);
  await presence.close();
});
