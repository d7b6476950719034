import { once } from 'node:events';
import type { Socket } from 'node:net';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { afterEach, describe, expect, test } from 'vitest';
import { until } from '../harness.ts';
import { startHttpWorld, type HttpWorld, type HttpWorldOptions } from './harness.ts';

const most = 262_144;
const size = 200_000;
const measured = JSON.stringify({ sId: '0x1', val: 1 });

let world: HttpWorld;
const start = async (more: HttpWorldOptions = {}) => {
  world = await startHttpWorld({ ...more, limits: { maxMeasurementPacketBytes: most } });
};
afterEach(() => world.close());

const headOf = (length: number | null, as = world.device) =>
  `POST ${world.pathOf('measurements', as)} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nAuthorization: ${world.basic(as)}\r\n` +
  (length === null ? 'Transfer-Encoding: chunked\r\n\r\n' : `Content-Length: ${length}\r\n\r\n`);
const throttle = (bytes: number) =>
  until(() => world.connector.snapshot().bytes === bytes, `${bytes} bytes`);

// No retry: leftovers of a first attempt would be collected during the second.
test('a body in chunks of one byte takes no more memory than it counts', { retry: 0 }, async () => {
  await start();
  const [bodies, length] = [20, 40_000];
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  const measure = () => {
    collect();
    const { heapUsed, external } = process.memoryUsage();
    return heapUsed + external;
  };
  const text = measured.padEnd(length);
  const chunks = text
    .split('')
    .map((byte) => `1\r\n${byte}\r\n`)
    .join('');
  const before = measure();
  const sockets = await Promise.all(Array.from({ length: bodies }, () => world.dial()));
  for (const socket of sockets) {
    socket.write(headOf(null).replace('/measurements', '/state'));
    socket.write(chunks);
  }
  const counted = () => world.connector.snapshot().bytes;
  await until(() => counted() >= bodies * length, 'all bytes');
  expect(counted()).toBeLessThan(2 * bodies * length);
  // A Buffer for each byte would take 200 bytes: 160 MB.
  expect(measure() - before).toBeLessThan(16_000_000);
  const answered = once(sockets[0] as Socket, 'data');
  sockets[0]?.write('0\r\n\r\n');
  expect(String(await answered)).toMatch(/^HTTP\/1\.1 200 /);
});

describe('a body of measurements', () => {
  test('may have 256 KiB, not one byte more; other topics keep their limit', async () => {
    await start();
    expect((await world.post('measurements', measured.padEnd(most))).status).toBe(200);
    expect((await world.post('measurements', measured.padEnd(most + 1))).status).toBe(413);
    for (const topic of ['state', 'events', 'profile', 'configuration', 'time'])
      expect((await world.post(topic, '{}'.padEnd(65_537))).status).toBe(413);
    expect(world.store.stored).toHaveLength(1);
    await throttle(0);
  });

  test('may arrive in chunks, up to the same size', async () => {
    await start();
    const chunk = (text: string) => `${text.length.toString(16)}\r\n${text}\r\n`;
    const part = chunk(' '.repeat(64_000));
    const whole = chunk(measured) + part.repeat(4) + chunk('');
    expect(await world.raw(headOf(null), whole)).toMatch(/^HTTP\/1\.1 200 /);
    const longer = chunk(measured) + part.repeat(5);
    expect(await world.raw(headOf(null), longer)).toMatch(/^HTTP\/1\.1 413 /);
    expect(world.store.stored).toHaveLength(1);
    await throttle(0);
  });

  test('is charged to its account as a whole: the account waits, and nobody else', async () => {
    await start({ tuning: { maxLargeBytes: 2 * size } });
    const other = world.store.addDevice(2, 2);
    const first = await world.dial();
    first.write(headOf(size));
    await throttle(size);
    const second = world.raw(headOf(size), measured.padEnd(size));
    const others = await world.post('measurements', measured.padEnd(size), { as: other });
    expect(others.status).toBe(200);
    expect(world.store.stored.map(({ device }) => device.accountId)).toEqual([2]);
    first.write(measured.padEnd(size));
    expect(await second).toMatch(/^HTTP\/1\.1 200 /);
    await until(() => world.store.stored.length === 3);
    await throttle(0);
  });

  test('that finds no room in time is answered 503', async () => {
    await start({ tuning: { maxLargeBytes: size, largePatienceMs: 50 } });
    const first = await world.dial();
    first.write(headOf(size));
    await throttle(size);
    const refused = await world.post('measurements', measured.padEnd(size));
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '5']);
    first.destroy();
    await throttle(0);
    expect((await world.post('measurements', measured.padEnd(size))).status).toBe(200);
  });

  test('that breaks off while it waits leaves nothing behind', async () => {
    await start({ tuning: { maxLargeBytes: size } });
    const first = await world.dial();
    first.write(headOf(size));
    await throttle(size);
    const second = await world.dial();
    second.write(headOf(size));
    await world.send('/devices/x/up/state').catch(() => undefined);
    second.destroy();
    first.destroy();
    await throttle(0);
    expect((await world.post('measurements', measured.padEnd(size))).status).toBe(200);
  });
});
