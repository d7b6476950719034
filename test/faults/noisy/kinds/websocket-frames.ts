import { once } from 'node:events';
import type { NoisyKind } from '../kind.ts';
import { work } from '../workers.ts';

const upgrade = [
  'GET /mqtt HTTP/1.1',
  'Host: x',
  'Upgrade: websocket',
  'Connection: Upgrade',
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==',
  'Sec-WebSocket-Version: 13',
  'Sec-WebSocket-Protocol: mqtt',
  '\r\n',
].join('\r\n');

const framesAWrite = 2_000;
/** Binary frames without a payload, and pings: six and seven bytes, of which MQTT never sees any. */
const frames = [
  [0x82, 0x80, 0, 0, 0, 0],
  [0x89, 0x81, 0, 0, 0, 0, 1],
].map((bytes) => Buffer.from(Array.from({ length: framesAWrite }, () => bytes).flat()));

export const websocketFrames: NoisyKind = {
  name: 'websocket-frames',
  says: '40 connections without a login that send WebSocket frames of no payload, and pings',
  setUp: async (enemy) => {
    const port = Number(new URL(enemy.url).port);
    return (signal) =>
      work(40, signal, async (worker) => {
        const socket = enemy.dial(port).resume();
        const closed = once(socket, 'close').catch(() => undefined);
        enemy.tally.count('opened');
        socket.write(upgrade);
        const flood = frames[worker % frames.length] ?? Buffer.alloc(0);
        while (!socket.destroyed && !signal.aborted) {
          enemy.tally.count('frames', framesAWrite);
          if (!socket.write(flood))
            await Promise.race([once(socket, 'drain').catch(() => undefined), closed]);
          await new Promise(setImmediate);
        }
        await closed;
      });
  },
};
