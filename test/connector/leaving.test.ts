// Programs that publish, send DISCONNECT and are gone.
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, rm } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Duplex, PassThrough } from 'node:stream';
import { connect as connectTls } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { generate, type Packet } from 'mqtt-packet';
import { afterEach, describe, expect, test } from 'vitest';
import { createWebSocketStream, WebSocket } from 'ws';
import { makeCertificate } from '../support/certificate.ts';
import { debianPython } from '../support/python.ts';
import { startWorld, until, type World } from './harness.ts';
import { connectPacket, moments, publishPacket } from './raw.ts';

const program = fileURLToPath(new URL('leaving.py', import.meta.url));

const rate = 1_000_000;
const limits = { messagesPerSecond: rate, messagesBurst: rate, measurementsPerSecond: rate };

let world: World;
afterEach(() => world.close());

// Each acknowledgement that reaches a closed socket is answered with a reset.
test.skipIf(!existsSync(debianPython)).each([4, 5])(
  'everything published before a DISCONNECT is stored, even from a program that reads no acknowledgement (level %i)',
  async (level) => {
    world = await startWorld({ limits });
    const { port, device, store } = world;
    const args = [program, port, device.uuid, device.token, level, 500].map(String);
    const [status] = (await once(spawn(debianPython, args), 'exit')) as [number];
    expect(status).toBe(0);
    await expect.poll(() => world.counted).toContain('disconnected peer');
    await expect.poll(() => store.stored.length).toBe(500);
  },
);

const ways = ['TCP', 'TLS', 'a WebSocket'] as const;

/** A stream to the connector, and what has to be ended with it. */
async function open(way: (typeof ways)[number]): Promise<Duplex> {
  if (way === 'TCP') return world.dial();
  if (way === 'TLS') {
    const port = world.connector.addresses.tls?.port ?? 0;
    const socket = connectTls({ host: '127.0.0.1', port, rejectUnauthorized: false });
    await once(socket, 'secureConnect');
    return socket;
  }
  const server = createServer();
  server.on('upgrade', (...upgrade) => world.connector.acceptWebSocket(...upgrade));
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const socket = new WebSocket(`ws://127.0.0.1:${port}/mqtt`, 'mqtt');
  await once(socket, 'open');
  server.close();
  return createWebSocketStream(socket);
}

describe.each(ways)('over %s', (way) => {
  test.each([
    [4, 500],
    [5, 500],
    [4, 5_000],
    [5, 5_000],
  ] as const)(
    'everything sent before the end is stored, however late the store is: level %i, %i messages',
    async (protocolVersion, count) => {
      const folder = await mkdtemp(join(tmpdir(), 'leaving-'));
      const files = { certFile: join(folder, 'c.crt'), keyFile: join(folder, 'c.key') };
      await makeCertificate('leaving', files);
      world = await startWorld({ limits, tls: { host: '127.0.0.1', port: 0, ...files } });
      await rm(folder, { recursive: true });
      const { store, device } = world;
      store.isHolding = true;
      const topic = `devices/${device.uuid}/up/measurements`;
      const publish = (n: number) =>
        publishPacket(topic, { sId: '0x1', val: n, ts: n }, { qos: 1, messageId: n });
      const packets: Packet[] = [
        connectPacket(world, { protocolVersion }),
        ...Array.from({ length: count }, (_, n) => publish(n + 1)),
        { cmd: 'disconnect' },
      ];
      const stream = await open(way);
      stream.on('error', () => undefined);
      // Reads the acknowledgements, so that the connection ends without a reset.
      stream.pipe(new PassThrough().resume());
      const bytes = Buffer.concat(packets.map((packet) => generate(packet, { protocolVersion })));
      // A WebSocket message may have 128 KiB.
      for (let at = 0; at < bytes.length; at += 65_536)
        stream.write(bytes.subarray(at, at + 65_536));
      stream.end();
      await until(() => store.held.length >= 100, 'its messages');
      // By then the end has arrived, before nearly everything has been read.
      await moments(world);
      store.release();
      await until(() => store.stored.length === count, `${count} messages`);
      await until(() => world.connector.snapshot().connections === 0, 'the end');
    },
  );
});
