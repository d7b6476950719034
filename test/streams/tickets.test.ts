import { afterAll, beforeAll, expect, test } from 'vitest';
import { createLocalBus } from '../../src/bus/bus.ts';
import type { Database } from '../../src/db/database.ts';
import { createTickets } from '../../src/streams/tickets.ts';
import { makeKey } from '../api-keys/open-key.ts';
import { insertAccount } from '../support/accounts.ts';
import { thresholdPurpose, type App } from '../journeys/app.ts';
import { testService, type TestService } from '../journeys/service.ts';
import { openTestDatabase } from '../support/database.ts';
import { addDevice, openAccount, openStream } from './readers.ts';

/** How long a ticket can be opened: docs/streams.md. */
const ticketMs = 60_000;

const sense = '0x01';

let service: TestService;
/** Another process on the same database. */
let second: TestService;
let db: Database;
let aheadMs = 0;
const clocks = { clock: () => Date.now() + aheadMs, monotonicClock: () => performance.now() };

beforeAll(async () => {
  service = await testService({}, { clocks });
  second = await testService({ DATABASE_URL: service.databaseUrl }, { clocks });
  db = openTestDatabase(service.databaseUrl);
});
afterAll(async () => {
  await db?.close();
  await second?.close();
  await service?.close();
});

type Made = { url: string; expiresTs: number; timestamp: number };

const make = (app: App, asked: object = { kinds: ['measurements'] }) =>
  app.call<Made>('POST', '/v2/streams', asked);
const statusOf = async (path: string, of = service) => {
  const response = await fetch(of.url + path);
  await response.body?.cancel();
  return response.status;
};

test('one connection carries each kind under its own name', async () => {
  const { app } = await openAccount(service.url);
  const device = await addDevice(app);
  const purpose = thresholdPurpose(1, 30);
  const [event] = purpose.states[0]?.events ?? [];
  if (event) Object.assign(event.actions.cloud, { sendPush: true });
  const body = { deviceAuthUuids: [device.uuid], purposes: [purpose] };
  await app.call('POST', '/v2/devices/profile', body);
  const kinds = ['events', 'measurements', 'alarms'];
  const { url, expiresTs, timestamp } = await make(app, { kinds });
  expect(expiresTs - timestamp).toBeGreaterThan(50_000);
  const stream = await openStream(service.url + url, null);
  const onlyAlarms = await openStream(
    service.url + (await make(app, { kinds: ['alarms'] })).url,
    null,
  );
  await device.publish('up/measurements', { sId: sense, val: 31 });
  await stream.untilNamed('measurement', 1);
  await stream.untilNamed('event', 1);
  await onlyAlarms.untilNamed('alarm', 1);
  await stream.untilNamed('alarm', 1);
  expect(onlyAlarms.messages.map(({ event: name }) => name).filter(Boolean)).toEqual(['alarm']);
  expect(stream.lastId()).toMatch(/^e=.+;m=.+$/);
  stream.close();
  await device.publish('up/measurements', { sId: sense, val: 32 });
  const resumed = await openStream(service.url + url, null, stream.lastId());
  expect(await resumed.untilValues(1)).toEqual([[sense, 32]]);
  const [again] = await resumed.untilNamed('event', 1);
  expect(again).toMatchObject({ deviceAuthUuid: device.uuid, type: 'sense' });
  resumed.close();
  onlyAlarms.close();
});

test('a ticket can be opened for a minute, and again for a minute after each disconnection', async () => {
  const { app } = await openAccount(service.url);
  const unused = await make(app);
  const { url } = await make(app);
  for (let i = 0; i < 3; i += 1) {
    const stream = await openStream(service.url + url, null);
    expect(stream.named('opened')).toHaveLength(1);
    aheadMs += 45_000;
    const openUntil = await expiryOf(app);
    stream.close();
    await expect.poll(() => expiryOf(app), { timeout: 60_000 }).toBeGreaterThan(openUntil);
  }
  expect(await statusOf(unused.url)).toBe(401);
  aheadMs += ticketMs + 1_000;
  for (const each of [service, second]) expect(await statusOf(url, each)).toBe(401);
});

/** When the account's last ticket expires. */
async function expiryOf(app: App): Promise<number> {
  const { rows } = await db.query<{ ts: number }>(
    `select max(t.expires_at) as ts
       from stream_ticket t join account a on a.id = t.account_id where a.email = $1`,
    [app.email],
  );
  return rows[0]?.ts ?? 0;
}

test('if two open it at once, one of them stays open', async () => {
  const { app } = await openAccount(service.url);
  const device = await addDevice(app);
  const { url } = await make(app);
  const two = await Promise.all([1, 2].map(() => openStream(service.url + url, null)));
  const ended = await Promise.race(two.map(async (one) => one.ended.then(() => one)));
  const left = two.find((one) => one !== ended);
  await device.publish('up/measurements', { sId: sense, val: 1 });
  expect(await left?.untilValues(1)).toEqual([[sense, 1]]);
  left?.close();
});

test('an open ticket is extended until it is opened elsewhere', async () => {
  const accountId = await insertAccount(db);
  const holder = { accountId, accountUuid: '', sessionId: crypto.randomUUID() };
  let nowTs = Date.now();
  const makeTickets = () =>
    createTickets({
      db,
      bus: createLocalBus({ onListenerError: () => undefined }),
      clock: () => nowTs,
      findHolder: async () => holder,
    });
  const [here, there] = [makeTickets(), makeTickets()];
  const { ticket } = await here.make(holder, { kinds: ['events'], filters: {} });
  const opening = await here.open(ticket);
  for (let i = 0; i < 3; i += 1) {
    nowTs += ticketMs - 1_000;
    await opening.renew();
  }
  await there.open(ticket);
  await expect(opening.renew()).rejects.toThrow('no longer valid');
  const { rows } = await db.query('select * from stream_ticket where account_id = $1', [accountId]);
  expect(JSON.stringify(rows)).not.toContain(ticket);
  const limits = { kinds: ['events' as const], filters: {} };
  for (let i = 0; i < 3; i += 1) await here.make(holder, limits);
  nowTs += ticketMs + 1_000;
  await here.make(holder, limits);
  const { rows: left } = await db.query('select from stream_ticket where account_id = $1', [
    accountId,
  ]);
  expect(left).toHaveLength(1);
});

test.each(['logs out', 'changes the password elsewhere', 'is deleted'])(
  'ends, and is refused in any process, once its account %s',
  async (how) => {
    const { app, token } = await openAccount(service.url);
    const { url } = await make(app);
    const stream = await openStream(service.url + url, null);
    const { sessions } = await app.call<{ sessions: { id: string; current: boolean }[] }>(
      'GET',
      '/v2/accounts/sessions',
    );
    const own = sessions.find(({ current }) => current)?.id;
    const password = 'correct horse battery';
    if (how === 'logs out') await app.call('DELETE', `/v2/accounts/sessions/${own}`);
    else if (how === 'is deleted') await ask(token, 'DELETE', '/v2/accounts', { password });
    else {
      const login = await ask(undefined, 'POST', '/v2/accounts/login', {
        email: app.email,
        password,
      });
      const { accountAuthToken } = (await login.json()) as { accountAuthToken: string };
      const change = { oldPassword: password, newPassword: 'another horse battery' };
      expect((await ask(accountAuthToken, 'PUT', '/v2/accounts/password', change)).status).toBe(
        200,
      );
    }
    await stream.ended;
    for (const each of [service, second]) expect(await statusOf(url, each)).toBe(401);
  },
);

const ask = (token: string | undefined, method: string, path: string, body: object) =>
  fetch(service.url + path, {
    method,
    headers: {
      'content-type': 'application/json',
      ...(token !== undefined && { authorization: `Bearer ${token}` }),
    },
    body: JSON.stringify(body),
  });

test("of a key it ends with the key, and carries what the key's labels allow", async () => {
  const { app } = await openAccount(service.url);
  const [inside, outside] = [await addDevice(app, ['cellar']), await addDevice(app, ['attic'])];
  const { keyId, key } = await makeKey(app, { scopes: ['data:read'], labels: ['cellar'] });
  const post = (asked: object) => ask(key, 'POST', '/v2/streams', asked);
  const kinds = ['measurements'];
  expect((await post({ kinds, filters: { devices: [outside.uuid] } })).status).toBe(404);
  const { url } = (await (await post({ kinds })).json()) as Made;
  const stream = await openStream(service.url + url, null);
  const direct = await openStream(`${service.url}/v2/measurements/stream`, key);
  await outside.publish('up/measurements', { sId: sense, val: 1 });
  await inside.publish('up/measurements', { sId: sense, val: 2 });
  for (const one of [stream, direct]) expect(await one.untilValues(1)).toEqual([[sense, 2]]);
  // Its label is removed, and another device gets it.
  await app.call('PUT', `/v2/devices/${inside.uuid}/labels`, { labels: [] });
  await app.call('PUT', `/v2/devices/${outside.uuid}/labels`, { labels: ['cellar'] });
  await expect
    .poll(async () => {
      await inside.publish('up/measurements', { sId: sense, val: 3 });
      await outside.publish('up/measurements', { sId: sense, val: 4 });
      return stream.values().at(-1);
    })
    .toEqual([sense, 4]);
  await inside.publish('up/measurements', { sId: sense, val: 5 });
  await outside.publish('up/measurements', { sId: sense, val: 6 });
  await expect.poll(() => stream.values().at(-1)).toEqual([sense, 6]);
  expect(stream.values()).not.toContainEqual([sense, 5]);
  // It gets the label back, together with others.
  const labelled = { action: 'label', labels: ['cellar'], deviceAuthUuids: [inside.uuid] };
  await app.call('POST', '/v2/devices/actions', labelled);
  const backAgain = async () => {
    await inside.publish('up/measurements', { sId: sense, val: 7 });
    return stream.values().at(-1);
  };
  await expect.poll(backAgain, { timeout: 60_000 }).toEqual([sense, 7]);
  await app.call('DELETE', `/v2/accounts/keys/${keyId}`);
  await Promise.all([stream.ended, direct.ended]);
  for (const each of [service, second]) expect(await statusOf(url, each)).toBe(401);
});

test('a key that expires ends its ticket', async () => {
  const { app } = await openAccount(service.url);
  const { key } = await makeKey(app, { scopes: ['data:read'], expiresTs: clocks.clock() + 30_000 });
  const made = await ask(key, 'POST', '/v2/streams', { kinds: ['events'] });
  const { url } = (await made.json()) as Made;
  aheadMs += 31_000;
  expect(await statusOf(url)).toBe(401);
});

test('a removed device sends nothing more, and naming it then gives 404', async () => {
  const { app } = await openAccount(service.url);
  const device = await addDevice(app);
  const { url } = await make(app, { kinds: ['measurements'], filters: { devices: [device.uuid] } });
  const stream = await openStream(service.url + url, null);
  await device.publish('up/measurements', { sId: sense, val: 1 });
  await stream.untilValues(1);
  await app.call('DELETE', `/v2/devices/${device.uuid}`);
  stream.close();
  expect(await statusOf(url)).toBe(404);
});
