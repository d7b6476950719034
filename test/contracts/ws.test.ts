import { once } from 'node:events';
import { type AddressInfo, connect } from 'node:net';
import { expect, test } from 'vitest';
import { type WebSocket, WebSocketServer } from 'ws';

// What connector/mqtt/listeners.ts relies on when it drops what a WebSocket has read.

const upgrade =
  'GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n' +
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n';
const frames = (count: number) =>
  Buffer.concat(Array.from({ length: count }, () => Buffer.from([0x82, 0x80, 0, 0, 0, 0])));

test('after a close frame a receiver drops what follows, and these members say that there was one', async () => {
  const server = new WebSocketServer({ port: 0, host: '127.0.0.1', allowSynchronousEvents: false });
  await once(server, 'listening');
  let messages = 0;
  server.on('connection', (socket: WebSocket) => {
    socket.on('message', () => {
      messages += 1;
      const { _receiver: receiver } = socket as unknown as { _receiver: object };
      expect(receiver).toMatchObject({ _opcode: 2, _bufferedBytes: 6 * 99 });
      expect(receiver).toHaveProperty('_buffers');
      Object.assign(receiver, { _buffers: [], _bufferedBytes: 0, _opcode: 8 });
    });
  });
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1');
  client.write(upgrade);
  await once(client, 'data');
  client.write(frames(100));
  await expect.poll(() => messages).toBe(1);
  client.end(frames(100));
  const [socket] = server.clients;
  if (socket) await once(socket, 'close');
  expect(messages).toBe(1);
  server.close();
});
