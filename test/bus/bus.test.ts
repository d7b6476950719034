import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest';
import { type Bus, createLocalBus } from '../../src/bus/bus.ts';
import { startRedisBus } from '../../src/bus/redis.ts';
import { downTopics } from '../../src/contract/uplink.ts';
import { connectRedis, closeRedis } from '../../src/lib/redis.ts';
import { hasRedis, type Redis, startRedis } from '../support/redis.ts';
import { monotonicClock } from '../../src/lib/clock.ts';

const revoked = (accountId: number) => ({ accountId });

describe('the local bus', () => {
  test('calls listeners at once and in order; one that throws does not affect the others', () => {
    const errors: unknown[] = [];
    const bus = createLocalBus({ onListenerError: (error) => errors.push(error) });
    const heard: string[] = [];
    const stop = bus.subscribe('revoked', ({ accountId }) => heard.push(`first ${accountId}`));
    bus.subscribe('revoked', () => {
      throw new Error('no');
    });
    bus.subscribe('revoked', ({ accountId }) => heard.push(`third ${accountId}`));
    bus.publish('revoked', revoked(1));
    expect(heard).toEqual(['first 1', 'third 1']);
    expect(errors).toHaveLength(1);
    stop();
    bus.publish('revoked', revoked(2));
    expect(heard).toEqual(['first 1', 'third 1', 'third 2']);
  });
});

describe.skipIf(!hasRedis)('the bus over Redis', () => {
  let redis: Redis;
  const buses: Bus[] = [];
  const errors: Error[] = [];
  beforeAll(async () => {
    redis = await startRedis();
  });
  afterAll(() => redis.kill());
  afterEach(async () => {
    await Promise.all(buses.splice(0).map((bus) => bus.close()));
  });

  async function startBus(): Promise<Bus> {
    const bus = await startRedisBus({
      url: redis.url,
      heartbeatMs: 100,
      monotonicClock,
      onError: (error) => errors.push(error),
      onListenerError: () => {},
    });
    buses.push(bus);
    return bus;
  }
  function listen(bus: Bus) {
    const heard: unknown[] = [];
    bus.subscribe('revoked', (message) => heard.push(message));
    bus.subscribe('resync', () => heard.push('resync'));
    return heard;
  }
  /** Publishes until a message arrives, which proves that the connection works. */
  async function expectToArrive(from: Bus, heard: unknown[], accountId: number) {
    await vi.waitFor(
      () => {
        from.publish('revoked', revoked(accountId));
        expect(heard).toContainEqual(revoked(accountId));
      },
      { timeout: 60_000 },
    );
  }

  test('delivers to the publisher at once and only once, and to the others', async () => {
    const [a, b] = [await startBus(), await startBus()];
    const [atA, atB] = [listen(a), listen(b)];
    a.publish('revoked', revoked(1));
    expect(atA).toEqual([revoked(1)]);
    b.publish('revoked', revoked(2));
    const patience = { timeout: 60_000 };
    await vi.waitFor(() => expect(atA).toContainEqual(revoked(2)), patience);
    await vi.waitFor(() => expect(atB).toContainEqual(revoked(1)), patience);
    // What A published first has returned to it by now, and was not delivered again. A busy machine may miss a
    // heartbeat of 100 ms, so a `resync` between the messages is ignored.
    const messages = (heard: unknown[]) => heard.filter((one) => one !== 'resync');
    expect(messages(atA)).toEqual([revoked(1), revoked(2)]);
    expect(messages(atB)).toEqual([revoked(2), revoked(1)]);
  });

  test('carries every kind of message unchanged', async () => {
    const [a, b] = [await startBus(), await startBus()];
    const payload = { deep: [1, { x: null }] };
    const toDevices = downTopics.map((topic) => ({
      uuid: 'u',
      message: { topic, payload, pId: 'p' },
    }));
    const device = { deviceId: 1, uuid: 'u', push: 'configuration' as const };
    const heard: unknown[] = [];
    b.subscribe('down', (message) => heard.push(message));
    b.subscribe('device', (message) => heard.push(message));
    for (const message of toDevices) a.publish('down', message);
    a.publish('device', device);
    await vi.waitFor(() => expect(heard).toContainEqual(device), { timeout: 60_000 });
    expect(heard).toEqual([...toDevices, device]);
  });

  test('ignores what it does not understand', async () => {
    const [a, b] = [await startBus(), await startBus()];
    const heard = listen(b);
    b.subscribe('down', (message) => heard.push(message));
    const client = await connectRedis({ url: redis.url, onError: () => {} });
    errors.length = 0;
    const wrong = { from: 'x', channel: 'revoked', message: { accountId: 'one' } };
    // What a later version says.
    const channel = { from: 'x', channel: 'unheard-of', message: {} };
    const weather = { uuid: 'd', message: { topic: 'weather', payload: {} } };
    const topic = { from: 'x', channel: 'down', message: weather };
    for (const text of ['{', '5', ...[wrong, channel, topic].map((one) => JSON.stringify(one))])
      await client.publish('sensorium:bus', text);
    await closeRedis(client);
    await expectToArrive(a, heard, 3);
    expect(new Set(heard)).toEqual(new Set([revoked(3)]));
    expect(errors.length).toBeGreaterThanOrEqual(5);
  });

  test('recovers when Redis does, and reports that messages may have been missed', async () => {
    const [a, b] = [await startBus(), await startBus()];
    const [atA, atB] = [listen(a), listen(b)];
    await redis.restart();
    await vi.waitFor(() => expect(atA).toContain('resync'), { timeout: 60_000 });
    await vi.waitFor(() => expect(atB).toContain('resync'), { timeout: 60_000 });
    await expectToArrive(a, atB, 4);
    await expectToArrive(b, atA, 5);
  });

  test('delivers to its own process while Redis is away, and starts without it', async () => {
    const a = await startBus();
    const atA = listen(a);
    await redis.kill();
    a.publish('revoked', revoked(6));
    expect(atA).toEqual([revoked(6)]);
    const late = await startBus();
    const atLate = listen(late);
    await redis.restart();
    await expectToArrive(a, atLate, 7);
    await expectToArrive(late, atA, 8);
  });

  test('reconnects when a connection hangs without breaking', async () => {
    const [a, b] = [await startBus(), await startBus()];
    const atB = listen(b);
    redis.pause();
    try {
      errors.length = 0;
      await vi.waitFor(() => expect(errors.length).toBeGreaterThan(0), { timeout: 60_000 });
    } finally {
      redis.resume();
    }
    await expectToArrive(a, atB, 9);
  });
});
