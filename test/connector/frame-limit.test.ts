import { once } from 'node:events';
import { createServer } from 'node:http';
import { type AddressInfo, connect } from 'node:net';
import type { Duplex } from 'node:stream';
import { expect, test } from 'vitest';
import type { Admitted } from '../../connector/mqtt/admission.ts';
import { createFrameLimit, createWebSocketListener } from '../../connector/mqtt/listeners.ts';
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

/** A turn of the event loop takes this long: so does one of a process that has much to do. */
const turnMs = 20;

/** Opens a WebSocket, and writes the frame 9,000 times at once. `refusedAt`: the turn in which they were too many. */
async function flood(frame: readonly number[], take: (stream: Duplex) => void) {
  const seen = { turns: 0, refusedAt: 0, isOver: false };
  const clock = manualClock();
  const entry = { address: '127.0.0.1', refused: () => void (seen.refusedAt = seen.turns) };
  const taken = Promise.withResolvers<Duplex>();
  const listener = createWebSocketListener({
    admission: {
      offer: (_socket, _address, enter) => enter(entry as Partial<Admitted> as Admitted),
      countWaiting: () => 0,
      close: () => {},
    },
    handle: (stream) => taken.resolve(stream),
    log: { info() {}, warn() {}, error() {} },
    handshakeTimeoutMs: 60_000,
    maxPacketBytes: 65_536,
    isProxy: () => false,
    now: clock.now,
  });
  const server = createServer()
    .on('upgrade', (request, upgraded, head) => listener.accept(request, upgraded, head))
    .listen(0, '127.0.0.1');
  await once(server, 'listening');
  const tooMany = Promise.withResolvers<void>();
  const count = () => {
    seen.turns += 1;
    clock.monotonicMs += turnMs;
    if (seen.turns > 20_000) tooMany.resolve();
    else if (!seen.isOver) setImmediate(count);
  };
  const socket = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {});
  socket.write(upgrade);
  await once(socket, 'data');
  const stream = await taken.promise;
  take(stream);
  count();
  socket.write(Buffer.concat(Array.from({ length: 9_000 }, () => Buffer.from(frame))));
  // It ends once all that was read is taken apart.
  await Promise.race([once(stream, 'end'), once(stream, 'close'), tooMany.promise]);
  seen.isOver = true;
  socket.destroy();
  server.close();
  return seen;
}

// Each frame takes a turn of the event loop, and the connection would be in memory for as long.
test.each([
  ['empty frames', [0x82, 0x80, 0, 0, 0, 0]],
  ['frames of a byte', [0x82, 0x81, 0, 0, 0, 0, 0xc0]],
  ['pings', [0x89, 0x80, 0, 0, 0, 0]],
])('a WebSocket is closed for the %s of one write, and the rest is dropped', async (_, frame) => {
  const { turns, refusedAt } = await flood(frame, (stream) => stream.resume());
  expect(refusedAt).toBeGreaterThan(0);
  expect(turns).toBeLessThan(400);
});

test('what follows in a WebSocket that nobody reads any more is dropped', async () => {
  const { turns, refusedAt } = await flood([0x82, 0x84, 0, 0, 0, 0, 1, 2, 3, 4], (stream) =>
    stream.once('data', () => stream.destroy()),
  );
  expect(refusedAt).toBe(0);
  expect(turns).toBeLessThan(400);
});
