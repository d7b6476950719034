import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createServer as createHttpServer } from 'node:http';
import { connect, createServer, type AddressInfo, type Server } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import { connect as connectTls, createServer as createTlsServer } from 'node:tls';
import { createWebSocketStream, WebSocket, WebSocketServer } from 'ws';
import { describe, expect, test } from 'vitest';
import { gateReads, wakeReader } from '../../connector/mqtt/read-gate.ts';
import { until } from '../connector/harness.ts';
import { hasOpenssl, makeCertificate } from '../support/certificate.ts';

type Pair = { near: Duplex; far: Duplex; close: () => void };

const highWaterMark = 16_384;

async function listen(server: Server): Promise<number> {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return (server.address() as AddressInfo).port;
}

/** Both ends of a connection to this server, whose end comes from `onNear`. */
async function pairOf(
  server: Server,
  onNear: (take: (near: Duplex) => void) => void,
  dial: (port: number) => Duplex,
): Promise<Pair> {
  const arrived = new Promise<Duplex>(onNear);
  const far = dial(await listen(server));
  far.on('error', () => undefined);
  const near = await arrived;
  near.on('error', () => undefined);
  const close = () => {
    for (const end of [near, far]) end.destroy();
    server.close();
  };
  return { near, far, close };
}

function overTcp(): Promise<Pair> {
  const server = createServer({ highWaterMark });
  return pairOf(
    server,
    (take) => server.once('connection', take),
    (port) => connect(port, '127.0.0.1'),
  );
}

async function overTls(): Promise<Pair> {
  const dir = mkdtempSync(join(tmpdir(), 'contract-'));
  const files = { certFile: join(dir, 'cert.pem'), keyFile: join(dir, 'key.pem') };
  await makeCertificate('contract', files);
  const [cert, key] = [readFileSync(files.certFile), readFileSync(files.keyFile)];
  rmSync(dir, { recursive: true });
  const server = createTlsServer({ cert, key, highWaterMark });
  return pairOf(
    server,
    (take) => server.once('secureConnection', take),
    (port) => connectTls({ port, host: '127.0.0.1', ca: cert }),
  );
}

function overWebSocket(): Promise<Pair> {
  const server = createHttpServer();
  const sockets = new WebSocketServer({ server, perMessageDeflate: false });
  return pairOf(
    server,
    (take) =>
      sockets.once('connection', (socket) =>
        take(createWebSocketStream(socket, { readableHighWaterMark: highWaterMark })),
      ),
    (port) => createWebSocketStream(new WebSocket(`ws://127.0.0.1:${port}`)),
  );
}

const kinds = [
  { name: 'TCP', open: overTcp },
  { name: 'WebSocket', open: overWebSocket },
  ...(hasOpenssl ? [{ name: 'TLS', open: overTls }] : []),
];

describe.each(kinds)('a gated stream over $name', ({ open }) => {
  test('delivers nothing while the gate is shut, and then everything in order', async () => {
    const { near, far, close } = await open();
    const sent = Buffer.alloc(8 * 1_048_576);
    for (let at = 0; at < sent.length; at += 4) sent.writeUInt32BE(at, at);
    let isOpen = false;
    let asked = 0;
    gateReads(near, (read) => {
      asked += 1;
      const chunk = isOpen ? read() : null;
      if (chunk === null || chunk.length < 2) return chunk;
      // As the connector ends a read at a packet's boundary.
      near.unshift(chunk.subarray(chunk.length >> 1));
      return chunk.subarray(0, chunk.length >> 1);
    });
    const got: Buffer[] = [];
    let bytes = 0;
    near.on('readable', () => {
      for (let chunk = near.read() as Buffer | null; chunk; chunk = near.read() as Buffer | null) {
        got.push(chunk);
        bytes += chunk.length;
      }
    });
    for (let at = 0; at < sent.length; at += 65_536) far.write(sent.subarray(at, at + 65_536));
    await until(() => asked > 0 && near.readableLength >= highWaterMark, 'a full buffer');
    expect(bytes).toBe(0);
    // What is not read stays with the other side, and does not fill memory here.
    expect(near.readableLength).toBeLessThan(sent.length / 8);
    isOpen = true;
    wakeReader(near);
    await until(() => bytes === sent.length, 'all of it');
    expect(Buffer.concat(got).equals(sent)).toBe(true);
    close();
  });
});
