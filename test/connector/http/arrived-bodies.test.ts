import { afterEach, expect, test } from 'vitest';
import { until } from '../harness.ts';
import { startHttpWorld, type HttpWorld } from './harness.ts';

let world: HttpWorld;
afterEach(() => world.close());

const measured = { sId: '0x10', val: 21.5, ts: 1_767_225_600_000 };

test('bodies of one connection arrive whole, in pieces, empty or one after the other', async () => {
  world = await startHttpWorld();
  const text = JSON.stringify(measured);
  const post = (body: string) =>
    `POST ${world.pathOf('measurements')} HTTP/1.1\r\nHost: x\r\nAuthorization: ${world.basic()}\r\nContent-Length: ${body.length}\r\n\r\n${body}`;
  const socket = await world.dial();
  let said = '';
  socket.on('data', (chunk: Buffer) => (said += chunk.toString('latin1')));
  const statuses = () =>
    [...said.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
  const expected: number[] = [];
  const answered = async (...more: number[]) => {
    expected.push(...more);
    await until(() => statuses().length === expected.length);
    expect(statuses()).toEqual(expected);
  };
  socket.write(post(text));
  await answered(200);
  // All of the head and part of the body are read before the rest arrives.
  socket.write(post(text).slice(0, -10));
  await until(() => world.connector.snapshot().bytes === text.length - 10);
  socket.write(text.slice(-10));
  await answered(200);
  socket.write(post(''));
  await answered(400);
  socket.write(post(text) + post(text) + post(text));
  await answered(200, 200, 200);
  expect(said.toLowerCase()).not.toContain('connection: close');
  expect(world.store.stored).toHaveLength(6);
  await until(() => world.connector.snapshot().bytes === 0, 'the room');
});

test('of bodies that never end the oldest makes room; one that arrives at once needs none', async () => {
  world = await startHttpWorld({ tuning: { maxBegunBytes: 8_000 } });
  const head = `POST ${world.pathOf('measurements')} HTTP/1.1\r\nHost: x\r\nAuthorization: ${world.basic()}\r\nContent-Length: 5000\r\n\r\n`;
  const oldest = world.raw(head, ' '.repeat(4_000));
  await until(() => world.connector.snapshot().bytes === 4_000);
  const newer = await world.dial();
  newer.write(head + ' '.repeat(3_000));
  await until(() => world.connector.snapshot().bytes === 7_000);
  const answer = await world.post('measurements', JSON.stringify(measured).padEnd(4_900));
  expect(answer.status).toBe(200);
  const newest = await world.dial();
  newest.write(head + ' '.repeat(2_000));
  expect(await oldest).toMatch(/^HTTP\/1\.1 503 /);
  expect(world.connector.snapshot().bytes).toBe(5_000);
  newer.write(JSON.stringify(measured).padEnd(2_000));
  newest.write(JSON.stringify(measured).padEnd(3_000));
  await until(() => world.store.stored.length === 3);
});
