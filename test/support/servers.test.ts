import { Redis } from 'ioredis';
import mqtt from 'mqtt';
import { describe, expect, it } from 'vitest';
import { hasMosquitto, startMosquitto } from './mosquitto.ts';
import { hasRedis, startRedis } from './redis.ts';

describe.skipIf(!hasRedis)('a Redis of the test’s own', () => {
  it('answers, and forgets when it is restarted', async () => {
    const server = await startRedis();
    const client = new Redis(server.url);
    client.on('error', () => undefined);
    await client.set('key', 'value');
    await server.restart();
    expect(await client.get('key')).toBeNull();
    client.disconnect();
    await server.kill();
  });
});

describe.skipIf(!hasMosquitto)('a Mosquitto of the test’s own', () => {
  it('accepts a client', async () => {
    const server = await startMosquitto();
    const client = await mqtt.connectAsync(server.url);
    expect(client.connected).toBe(true);
    await client.endAsync();
    await server.remove();
  });
});
