import { createServer, type Server } from 'node:net';
import type { AddressInfo } from 'node:net';
import { afterEach, expect, test } from 'vitest';
import { createScramClient } from '../../src/db/pg-driver.ts';

const password = 'told to nobody';
let server: Server | undefined;
afterEach(() => server?.close());

/** An impostor on the port: sends these bytes to each client and returns what came back. */
async function startImpostor(question: Buffer): Promise<{ url: string; heard(): Promise<Buffer> }> {
  const pieces: Buffer[] = [];
  let over = () => {};
  const ended = new Promise<void>((resolve) => (over = resolve));
  server = createServer((socket) => {
    socket.on('data', (piece) => {
      pieces.push(Buffer.from(piece));
      if (pieces.length === 1) socket.write(question);
    });
    socket.on('error', () => undefined);
    socket.on('close', () => over());
  });
  await new Promise<void>((resolve) => server?.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `postgresql://somebody:${encodeURIComponent(password)}@127.0.0.1:${port}/postgres`,
    heard: () => ended.then(() => Buffer.concat(pieces)),
  };
}

// AuthenticationCleartextPassword, AuthenticationMD5Password (PostgreSQL's manual, 54.7).
test.each([
  ['the clear text', Buffer.from([0x52, 0, 0, 0, 8, 0, 0, 0, 3])],
  ['its MD5', Buffer.from([0x52, 0, 0, 0, 12, 0, 0, 0, 5, 1, 2, 3, 4])],
])('a server that asks for %s gets nothing, and the connection ends', async (_, question) => {
  const impostor = await startImpostor(question);
  const client = createScramClient({ connectionString: impostor.url });
  await expect(client.connect()).rejects.toThrow('asked for the clear-text password');
  const heard = await impostor.heard();
  expect(heard.includes('somebody')).toBe(true);
  // Only the StartupMessage, which begins with its length, and no PasswordMessage.
  expect(heard.length).toBe(heard.readInt32BE(0));
});
