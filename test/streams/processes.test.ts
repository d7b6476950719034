import { connect } from 'node:net';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { Redis } from 'ioredis';
import { startRedisBus } from '../../src/bus/redis.ts';
import type { Bus } from '../../src/bus/bus.ts';
import { monotonicClock } from '../../src/lib/clock.ts';
import { testService, type TestService } from '../journeys/service.ts';
import { openTestDatabase } from '../support/database.ts';
import { canOpenRedis, openRedis, type OpenRedis } from '../support/redis.ts';
import { addDevice, openAccount, openStream } from './readers.ts';

const sense = '0x01';

describe.skipIf(!canOpenRedis)('streams of several processes', () => {
  let redis: OpenRedis;
  let first: TestService;
  let second: TestService;
  /** Hears what processes tell each other. */
  let witness: Bus;
  const heard = { measurements: 0, listeners: 0 };

  beforeAll(async () => {
    redis = await openRedis();
    first = await testService({ REDIS_URL: redis.url });
    second = await testService({ REDIS_URL: redis.url, DATABASE_URL: first.databaseUrl });
    const onError = () => undefined;
    const options = { url: redis.url, monotonicClock, onError, onListenerError: onError };
    witness = await startRedisBus(options);
    witness.subscribe('measurements', () => (heard.measurements += 1));
    witness.subscribe('listeners', () => (heard.listeners += 1));
  });
  afterAll(async () => {
    await witness?.close();
    await second?.close();
    await first?.close();
    await redis?.close();
  });

  test('carry what another process stores; nothing is published while nobody listens', async () => {
    const { app, token } = await openAccount(first.url);
    const device = await addDevice(app);
    const stranger = await openAccount(first.url);
    const ofStranger = await addDevice(stranger.app);
    const publish = (val: number) => device.publish('up/measurements', { sId: sense, val });
    await publish(1);
    const stream = await openStream(`${second.url}/v2/measurements/stream`, token);
    await expect.poll(() => heard.listeners).toBeGreaterThan(0);
    expect(heard.measurements).toBe(0);
    await ofStranger.publish('up/measurements', { sId: sense, val: 2 });
    await publish(3);
    expect(await stream.untilValues(1)).toEqual([[sense, 3]]);
    await expect.poll(() => heard.measurements).toBe(1);
    const said = heard.listeners;
    stream.close();
    // It announces that nobody is left; from then on nothing is published.
    await expect.poll(() => heard.listeners).toBeGreaterThan(said);
    await publish(4);
    const again = await openStream(`${second.url}/v2/measurements/stream`, token, stream.lastId());
    expect(await again.untilValues(1)).toEqual([[sense, 4]]);
    expect(heard.measurements).toBe(1);
    again.close();
  });

  test('of a ticket end in one process when it is opened, or its session ends, in another', async () => {
    const { app, token } = await openAccount(first.url);
    const { url } = await app.call<{ url: string }>('POST', '/v2/streams', { kinds: ['events'] });
    const before = await openStream(first.url + url, null);
    const after = await openStream(second.url + url, null);
    await before.ended;
    const { sessions } = await app.call<{ sessions: { id: string; current: boolean }[] }>(
      'GET',
      '/v2/accounts/sessions',
    );
    const own = sessions.find(({ current }) => current)?.id ?? '';
    await fetch(`${first.url}/v2/accounts/sessions/${own}`, {
      method: 'DELETE',
      headers: { authorization: `Bearer ${token}` },
    });
    await after.ended;
    for (const { url: at } of [first, second]) expect((await fetch(at + url)).status).toBe(401);
  });

  test('are told to resume if other processes could not be heard', async () => {
    const { app, token } = await openAccount(first.url);
    const device = await addDevice(app);
    const stream = await openStream(`${second.url}/v2/measurements/stream`, token);
    const admin = new Redis(redis.url);
    await admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub');
    admin.disconnect();
    await stream.ended;
    expect(stream.named('dropped')).toEqual([{ reason: 'interrupted' }]);
    await device.publish('up/measurements', { sId: sense, val: 1 });
    const again = await openStream(`${second.url}/v2/measurements/stream`, token, stream.lastId());
    // It may come twice: the other process's message was in transit when this stream began.
    expect(new Set(await again.untilValues(1))).toContainEqual([sense, 1]);
    again.close();
  });

  async function findDevice(uuid: string) {
    const db = openTestDatabase(first.databaseUrl);
    const { rows } = await db.query<{ accountId: number; deviceId: number }>(
      'select account_id as "accountId", id as "deviceId" from device where uuid = $1',
      [uuid],
    );
    await db.close();
    return rows;
  }

  test('drop a reader that does not read, with the reason, and delay nobody else', async () => {
    const { app, token } = await openAccount(first.url);
    const device = await addDevice(app);
    const [{ accountId, deviceId } = { accountId: 0, deviceId: 0 }] = await findDevice(device.uuid);
    const quick = await openStream(`${second.url}/v2/measurements/stream`, token);
    const socket = connect({ host: '127.0.0.1', port: Number(new URL(second.url).port) });
    const opened = new Promise((resolve) => socket.once('readable', resolve));
    socket.write(
      `GET /v2/measurements/stream HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${token}\r\n\r\n`,
    );
    await opened;
    // More than may wait for it, together with all buffers on the way.
    const messages = 30;
    const sId = 'x'.repeat(1_000);
    for (let i = 0; i < messages; i += 1) {
      const values = Array.from({ length: 400 }, (_, k): [string, number, number] => [sId, i, k]);
      const devices = [{ deviceId, uuid: device.uuid, values }];
      witness.publish('measurements', { accountId, devices });
      const goal = (i + 1) * 400;
      const read = () => quick.messages.length;
      await expect.poll(read, { interval: 2, timeout: 60_000 }).toBeGreaterThan(goal);
    }
    expect(quick.named('dropped')).toEqual([]);
    let text = '';
    socket.on('data', (bytes) => (text = (text + bytes.toString()).slice(-2_000)));
    await expect.poll(() => text, { timeout: 60_000 }).toContain('event: dropped');
    expect(text).toMatch(/data: {"reason":"slow-reader"}\nid: m=.+\n\n/);
    socket.destroy();
    quick.close();
  });
});
