import { createServer, type IncomingMessage, type Server } from 'node:http';
import { connect, type AddressInfo, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { UnreadBodies } from '../../src/lib/request-body.ts';

const mebibyte = 1_048_576;
/** What Node reads of a request before anything asks for its body. */
const readAhead = 262_144;

let server: Server;
let requests: IncomingMessage[];
let clients: Socket[];
let over: IncomingMessage[];

beforeEach(async () => {
  // The test advances the time.
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] });
  [requests, clients, over] = [[], [], []];
  const unreadBodies = new UnreadBodies();
  server = createServer((request) => {
    requests.push(request);
    const address = String(request.headers['x-address']);
    void unreadBodies.drop(request, address).then(() => over.push(request));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
});
afterEach(() => {
  vi.advanceTimersByTime(1_000);
  vi.useRealTimers();
  for (const client of clients) client.destroy();
  server.close();
});

function send(count: number, bytes: number, address: string, announced = bytes): void {
  const { port } = server.address() as AddressInfo;
  for (let n = 0; n < count; n += 1) {
    const client = connect(port, '127.0.0.1').on('error', () => undefined);
    client.write(`POST / HTTP/1.1\r\nHost: x\r\nX-Address: ${address}\r\n`);
    client.write(`Content-Length: ${announced}\r\n\r\n`);
    client.write(Buffer.alloc(bytes));
    clients.push(client);
  }
}

/** Whether it holds soon. `expect.poll` would advance the time. */
async function soon(holds: () => boolean): Promise<boolean> {
  const endMs = performance.now() + 60_000;
  while (!holds() && performance.now() < endMs) await new Promise(setImmediate);
  return holds();
}

const bytesRead = () => requests.map(({ socket }) => socket.bytesRead).toSorted((a, b) => b - a);

test('4 MiB per second are read of one network, and 16 MiB of all', async () => {
  send(20, mebibyte, '192.0.2.1');
  await expect.poll(() => requests.length).toBe(20);
  await expect.poll(() => over.length).toBe(4);
  send(20, mebibyte, '2001:db8::1');
  send(20, mebibyte, '2001:db8::2');
  await expect.poll(() => over.length).toBe(8);
  for (const n of [3, 4, 5]) send(5, mebibyte, `192.0.2.${n}`);
  await expect.poll(() => requests.length).toBe(75);
  await expect.poll(() => over.length).toBe(16);
  for (const bytes of bytesRead().slice(16)) expect(bytes).toBeLessThan(readAhead);
});

test('requests with unread bodies are answered after a second, and then more is read', async () => {
  send(6, mebibyte, '192.0.2.9');
  await expect.poll(() => requests.length).toBe(6);
  await expect.poll(() => over.length).toBe(4);
  vi.advanceTimersByTime(1_000);
  await new Promise(setImmediate);
  expect(over).toHaveLength(6);
  send(4, mebibyte, '192.0.2.9');
  expect(await soon(() => over.length === 10)).toBe(true);
});

test('of one body 4 MiB are read, whatever it announces', async () => {
  send(1, 5 * mebibyte, '192.0.2.7', 9 * mebibyte);
  expect(await soon(() => over.length === 1)).toBe(true);
});

test('small bodies are always read', async () => {
  send(5, mebibyte, '192.0.2.8');
  await expect.poll(() => over.length).toBe(4);
  send(30, 16_384, '192.0.2.8');
  await expect.poll(() => over.length).toBe(34);
});
