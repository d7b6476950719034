import { afterEach, describe, expect, test } from 'vitest';
import type { Downlink } from '../../../src/contract/uplink.ts';
import { until } from '../harness.ts';
import { startHttpWorld, type HttpWorld, type HttpWorldOptions } from './harness.ts';

let world: HttpWorld;
afterEach(() => world.close());

const start = async (options?: HttpWorldOptions) => void (world = await startHttpWorld(options));
const polls = () => world.connector.snapshot().polls;
const waits = (count = 1) => until(() => polls() === count, `${count} that wait`);
const text = (keptId: number): Downlink => ({ topic: 'display', payload: { keptId }, keptId });

function ask(query = 'wait=60', as = world.device, init: RequestInit = {}) {
  const headers = { authorization: world.basic(as) };
  return fetch(`${world.url}/devices/${as.uuid}/down?${query}`, { headers, ...init });
}
const bodyOf = async (asked: ReturnType<typeof ask>) =>
  (await (await asked).json()) as {
    messages: { topic: string; payload: unknown }[];
    after: string;
  };

test('a client that goes away no longer waits', async () => {
  await start();
  const gone = new AbortController();
  const asked = ask('wait=60', world.device, { signal: gone.signal }).catch(() => 'gone');
  await waits();
  gone.abort();
  expect(await asked).toBe('gone');
  await waits(0);
});

test('when the service stops, each poll is answered and its connection ends', async () => {
  await start();
  const asked = ask();
  await waits();
  await world.connector.close({ drainMs: 0 });
  const answer = await asked;
  expect([answer.status, answer.headers.get('connection')]).toEqual([200, 'close']);
  expect(await answer.json()).toMatchObject({ messages: [] });
  expect((await ask()).status).toBe(503);
});

test('an account may have as many polls as connections', async () => {
  await start({ ports: { maxConnectionsOf: () => 1 } });
  const asked = ask();
  await waits();
  const refused = await ask('wait=60', world.store.addDevice(2));
  expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '30']);
  world.store.disableAccount(1);
  expect(await bodyOf(asked)).toMatchObject({ messages: [] });
});

test('a poll that waits outlasts a store that is away', async () => {
  await start();
  const asked = ask();
  await waits();
  world.store.isAway = true;
  const before = world.store.subscribedTo.length;
  world.store.onSubscribed = () => [text(1)];
  world.store.bus.publish('down', { uuid: world.device.uuid, message: text(1) });
  await until(() => world.store.subscribedTo.length > before, 'an attempt');
  expect((await ask()).status).toBe(503);
  world.store.isAway = false;
  expect((await bodyOf(asked)).messages).toEqual([{ topic: 'display', payload: { keptId: 1 } }]);
});

test('after notices may have been missed, what is due is read again', async () => {
  await start();
  const asked = ask();
  await waits();
  world.store.onSubscribed = () => [text(1), text(2)];
  world.store.bus.publish('resync', {});
  const { messages, after } = await bodyOf(asked);
  expect(messages).toHaveLength(2);
  expect(world.store.delivered).toEqual([]);
  world.store.onSubscribed = () => [];
  await ask(`after=${after}`);
  expect(world.store.delivered.map(({ keptId }) => keptId)).toEqual([1, 2]);
});

test('errors are sent together, and only if the poll asks for them', async () => {
  await start();
  const [all, other] = [ask('wait=60'), ask('wait=60&topics=state')];
  await waits(2);
  const message = (reason: string): Downlink => ({ topic: 'errors', payload: { reason } });
  for (const reason of ['one', 'two'])
    world.store.bus.publish('down', { uuid: world.device.uuid, message: message(reason) });
  expect((await bodyOf(all)).messages.map(({ payload }) => payload)).toEqual([
    { reason: 'one' },
    { reason: 'two' },
  ]);
  expect(polls()).toBe(1);
  world.store.removeDevice(world.device.uuid);
  expect((await bodyOf(other)).messages).toEqual([]);
});

describe('polls beyond the rate are refused after a delay, with the time to wait:', () => {
  const tuning = { pollRefusalMs: 20 };
  const statusOf = async (as = world.device) => (await ask('', as)).status;

  test('a device', async () => {
    const limits = { messagesPerSecond: 1, messagesBurst: 2 };
    await start({ limits, now: () => 0, tuning });
    expect([await statusOf(), await statusOf(), await statusOf()]).toEqual([200, 200, 429]);
  });

  /** As many as an account with few connections may send at once. */
  const askInTurn = async () => {
    for (let n = 0; n < 40; n += 1) expect(await statusOf()).toBe(200);
  };

  test('all devices of an account together', async () => {
    await start({ ports: { maxConnectionsOf: () => 10 }, now: () => 0, tuning });
    await askInTurn();
    expect(await statusOf()).toBe(429);
    expect(await statusOf(world.store.addDevice(2))).toBe(429);
    expect(await statusOf(world.store.addDevice(3, 2))).toBe(200);
  });

  test('delayed refusals are sent when the service stops', async () => {
    await start({ ports: { maxConnectionsOf: () => 10 }, now: () => 0 });
    await askInTurn();
    const refused = statusOf();
    await until(() => world.connector.snapshot().refusals === 1, 'a poll that is to be refused');
    await world.connector.close({ drainMs: 0 });
    expect(await refused).toBe(503);
  });
});

test('a body is refused, and its connection ends', async () => {
  await start();
  const { uuid } = world.device;
  const said = await world.raw(
    `GET /devices/${uuid}/down HTTP/1.1\r\nHost: x\r\nAuthorization: ${world.basic()}\r\n` +
      'Transfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\r\nGET /x HTTP/1.1\r\nHost: x\r\n\r\n',
  );
  expect(said.match(/HTTP\/1\.1 \d+/g)).toEqual(['HTTP/1.1 400']);
});

test('a poll that names it gets a new token, once with each `after`', async () => {
  await start();
  const tokens = ['first', 'second'];
  world.store.onSubscribed = (topics) =>
    topics.includes('token')
      ? [{ topic: 'token', payload: { deviceAuthToken: tokens[0], ts: 1 } }]
      : [];
  expect((await bodyOf(ask('wait=0'))).messages).toEqual([]);
  const given = await bodyOf(ask('wait=0&topics=token,state'));
  expect(given.messages).toMatchObject([{ topic: 'token', payload: { deviceAuthToken: 'first' } }]);
  expect(given.after).not.toContain('first');
  const query = `wait=0&topics=token&after=${given.after}`;
  expect(await bodyOf(ask(query))).toMatchObject({ messages: [], after: given.after });
  // A device that begins anew may have lost it. The next change has another one.
  expect((await bodyOf(ask('wait=0&topics=token'))).messages).toHaveLength(1);
  tokens.shift();
  expect((await bodyOf(ask(query))).messages).toMatchObject([
    { payload: { deviceAuthToken: 'second' } },
  ]);
});
