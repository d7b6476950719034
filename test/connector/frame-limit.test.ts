import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { expect, test } from 'vitest';
import type { Admitted } from '../../connector/mqtt/admission.ts';
import { createFrameLimit, createWebSocketListener } from '../../connector/mqtt/listeners.ts';
import { monotonicClock } from '../../src/lib/clock.ts';
import { manualClock } from './harness.ts';

test('a frame limit allows a burst, then what a second earns; paid-off debt counts', () => {
  const clock = manualClock();
  const take = createFrameLimit({ perSecond: 10, burst: 100 }, clock.now);
  expect(take(100)).toBe(true);
  expect(take(1)).toBe(false);
  clock.monotonicMs += 1_000;
  expect(take(5)).toBe(true);
  expect(take(-90)).toBe(true);
  expect(take(80)).toBe(true);
});

test('nothing is saved up beyond a burst', () => {
  const clock = manualClock();
  const take = createFrameLimit({ perSecond: 10, burst: 100 }, clock.now);
  expect(take(-1_000)).toBe(true);
  expect(take(101)).toBe(false);
});

const upgrade =
  'GET /mqtt HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n';

// Each would take a turn of the event loop, and the connection would be in memory for as long.
test.each([
  ['empty frames', [0x82, 0x80, 0, 0, 0, 0]],
  ['frames of a byte', [0x82, 0x81, 0, 0, 0, 0, 0xc0]],
  ['pings', [0x89, 0x80, 0, 0, 0, 0]],
])('the %s behind those that a WebSocket is closed for are not taken apart', async (_, frame) => {
  let turns = 0;
  let refusedAt = 0;
  const entry = { address: '127.0.0.1', refused: () => void (refusedAt = turns) };
  const taken = Promise.withResolvers<Duplex>();
  const listener = createWebSocketListener({
    admission: {
      offer: (_socket, _address, enter) => enter(entry as Partial<Admitted> as Admitted),
      countWaiting: () => 0,
      close: () => {},
    },
    handle: (stream) => taken.resolve(stream.resume()),
    log: { info() {}, warn() {}, error() {} },
    handshakeTimeoutMs: 60_000,
    maxPacketBytes: 65_536,
    isProxy: () => false,
    now: monotonicClock,
  });
  const server = createServer()
    .on('upgrade', (request, upgraded, head) => listener.accept(request, upgraded, head))
    .listen(0, '127.0.0.1');
  await once(server, 'listening');
  let isOver = false;
  const count = () => {
    turns += 1;
    if (!isOver) setImmediate(count);
  };
  count();
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {});
  socket.write(upgrade);
  await once(socket, 'data');
  const stream = await taken.promise;
  const ended = once(stream, 'end');
  socket.write(Buffer.concat(Array.from({ length: 9_000 }, () => Buffer.from(frame))));
  await ended;
  isOver = true;
  server.close();
  expect(refusedAt).toBeGreaterThan(0);
  expect(turns - refusedAt).toBeLessThan(100);
});
