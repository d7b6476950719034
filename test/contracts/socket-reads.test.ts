import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import { connect, createServer as createNetServer, type AddressInfo, type Socket } from 'node:net';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { bufferAtMost, createSocketReads } from '../../src/http/socket-reads.ts';

let server: Server;
let near: Socket;
let taken: string[] = [];
let urls: (string | undefined)[] = [];
/** Whether reading may continue. */
let mayGoOn = true;
let isHandedOn = false;

beforeEach(async () => {
  taken = [];
  urls = [];
  mayGoOn = true;
  isHandedOn = false;
  const readThrough = createSocketReads();
  server = createServer((request, response) => {
    urls.push(request.url);
    response.end('x');
  });
  server.prependListener('connection', (socket) => {
    near = socket;
    readThrough(socket, (bytes) => {
      taken.push(String(bytes));
      if (isHandedOn) socket.emit('data', bytes);
      return mayGoOn;
    });
  });
  await once(server.listen(0, '127.0.0.1'), 'listening');
});
afterEach(async () => {
  server.closeAllConnections();
  await once(server.close(), 'close');
});

const dial = () => connect({ host: '127.0.0.1', port: (server.address() as AddressInfo).port });
const request = (path: string) => `GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`;
const said = () => taken.join('');

test('node:http parses only what arrives with `data`', async () => {
  const far = dial();
  far.write(request('/a') + request('/b'));
  await expect.poll(said).toBe(request('/a') + request('/b'));
  expect(urls).toEqual([]);
  near.emit('data', Buffer.from(request('/a')));
  expect(urls).toEqual(['/a']);
  expect(String((await once(far, 'data'))[0])).toMatch(/^HTTP\/1\.1 200 /);
  near.emit('data', Buffer.from(request('/b')));
  expect(urls).toEqual(['/a', '/b']);
  far.destroy();
});

test('a socket is read until its consumer has enough, and again when it is resumed', async () => {
  mayGoOn = false;
  const far = dial();
  far.write('a');
  await expect.poll(said).toBe('a');
  far.write('b');
  // What is written later on another connection is read, so this one would have been read too.
  const first = near;
  const other = dial();
  other.write('c');
  await expect.poll(said).toBe('ac');
  mayGoOn = true;
  first.resume();
  await expect.poll(said).toBe('acb');
  far.write('d');
  await expect.poll(said).toBe('acbd');
  for (const socket of [far, other]) socket.destroy();
});

test('the parser pauses and resumes the socket with its own methods while a body is read', async () => {
  const asked: string[] = [];
  server.removeAllListeners('request');
  server.on('request', (one) => void setImmediate(() => one.resume()));
  const far = dial();
  far.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 200000\r\n\r\n');
  await expect.poll(() => taken.length).toBe(1);
  near.pause = () => (asked.push('pause'), near);
  near.resume = () => (asked.push('resume'), near);
  near.emit('data', Buffer.from(said()));
  near.emit('data', Buffer.alloc(100_000));
  expect(asked.filter((one) => one === 'pause')).toHaveLength(1);
  await expect.poll(() => asked.at(-1)).toBe('resume');
  far.destroy();
});

test('with `httpAllowHalfOpen` a client that has ended its side is still answered', async () => {
  Object.assign(server, { httpAllowHalfOpen: true });
  isHandedOn = true;
  server.removeAllListeners('request');
  server.on('request', (one, response) => {
    one.socket.once('end', () => setImmediate(() => response.end('late')));
  });
  const far = dial();
  far.end(request('/a'));
  let text = '';
  for await (const chunk of far) text += String(chunk);
  expect(text).toContain('late');
});

test('more is read at once if more is expected, even in the middle of reading', async () => {
  let readMore = (): void => {};
  const lengths: number[] = [];
  const readThrough = createSocketReads();
  const reader = createNetServer((socket) => {
    readMore = readThrough(socket, (bytes) => {
      lengths.push(bytes.length);
      readMore();
      return true;
    });
    socket.resume();
  });
  await once(reader.listen(0, '127.0.0.1'), 'listening');
  const far = connect({ host: '127.0.0.1', port: (reader.address() as AddressInfo).port });
  far.end('x'.repeat(100_000));
  await expect.poll(() => lengths.reduce((sum, one) => sum + one, 0)).toBe(100_000);
  expect(lengths[0]).toBe(8_192);
  expect(Math.max(...lengths.slice(1))).toBeGreaterThan(8_192);
  reader.close();
});

test("the parser pauses the socket once the given number of a body's bytes are unread", async () => {
  const asked: string[] = [];
  server.removeAllListeners('request');
  server.on('request', (one) => bufferAtMost(one, 3));
  isHandedOn = true;
  server.prependListener('connection', (socket) => {
    socket.pause = () => {
      asked.push('pause');
      return socket;
    };
  });
  const far = dial();
  far.write('POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n');
  await expect.poll(said).toContain('chunked');
  far.write('1\r\na\r\n1\r\nb\r\n');
  await expect.poll(said).toContain('b');
  expect(asked).toEqual([]);
  far.write('1\r\nc\r\n');
  await expect.poll(() => asked).toEqual(['pause']);
  far.destroy();
});
