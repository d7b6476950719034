import { once } from 'node:events';
import { copyFile, mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import { createServer as createNetServer, type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import type { IClientOptions, IConnackPacket } from 'mqtt';
import { generate } from 'mqtt-packet';
import { WebSocket } from 'ws';
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest';
import { hasOpenssl, makeCertificate } from '../support/certificate.ts';
import {
  collect,
  onceClosed,
  startWorld,
  until,
  type World,
  type WorldOptions,
} from './harness.ts';
import { connectPacket, publishPacket } from './raw.ts';

let world: World;
const start = async (options?: WorldOptions) => (world = await startWorld(options));
const state = '{"puId":1,"stId":1}';
afterEach(() => world.close());

describe.skipIf(!hasOpenssl)('TLS', () => {
  let folder: string;
  const file = (name: string) => join(folder, name);

  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'certificates-'));
    await Promise.all(
      ['one', 'two'].map((name) =>
        makeCertificate(name, { certFile: file(`${name}.crt`), keyFile: file(`${name}.key`) }),
      ),
    );
  });
  afterAll(() => rm(folder, { recursive: true }));

  /** Replaces the files in use as tools do: by renaming. */
  async function install(name: string): Promise<void> {
    for (const kind of ['key', 'crt']) {
      await copyFile(file(`${name}.${kind}`), file(`next.${kind}`));
      await rename(file(`next.${kind}`), file(`used.${kind}`));
    }
  }

  async function startTls(): Promise<IClientOptions> {
    await install('one');
    const files = { certFile: file('used.crt'), keyFile: file('used.key') };
    await start({ tls: { host: '127.0.0.1', port: 0, ...files } });
    const port = world.connector.addresses.tls?.port ?? 0;
    return { protocol: 'mqtts', port, rejectUnauthorized: false };
  }

  /** The name in the certificate that a new connection gets. */
  async function shownName(port: number): Promise<unknown> {
    const socket = connectTls({ port, host: '127.0.0.1', rejectUnauthorized: false });
    await once(socket, 'secureConnect');
    const { subject } = socket.getPeerCertificate();
    socket.destroy();
    return subject.CN;
  }

  test('devices connect, publish and receive messages', async () => {
    const options = await startTls();
    world.store.onSubscribed = () => [{ topic: 'profile', payload: { pId: 'p' }, pId: 'p' }];
    const client = await world.connect(options);
    const messages = collect(client);
    await client.subscribeAsync(`devices/${world.device.uuid}/down/#`, { qos: 1 });
    await client.publishAsync(`devices/${world.device.uuid}/up/state`, state, { qos: 1 });
    await until(() => messages.length === 1);
    expect(world.store.stored).toHaveLength(1);
  });

  test('new connections get a changed certificate; open ones stay', async () => {
    const options = await startTls();
    const port = Number(options.port);
    const client = await world.connect(options);
    expect(await shownName(port)).toBe('one');
    await install('two');
    await until(() => world.logged.includes('certificate.reloaded'));
    expect(await shownName(port)).toBe('two');
    await client.publishAsync(`devices/${world.device.uuid}/up/state`, state, { qos: 1 });
    expect(client.connected).toBe(true);
  });

  test('an unusable certificate is logged, and the old one stays', async () => {
    const { port } = await startTls();
    await writeFile(file('used.crt'), 'no certificate');
    const message = 'certificate.refused';
    await until(() => world.logged.includes(message));
    expect(await shownName(Number(port))).toBe('one');
  });

  test('bytes that are not TLS, and unfinished handshakes, are closed', async () => {
    await install('one');
    const files = { certFile: file('used.crt'), keyFile: file('used.key') };
    await start({
      tls: { host: '127.0.0.1', port: 0, ...files },
      limits: { connectTimeoutMs: 100 },
    });
    const port = world.connector.addresses.tls?.port ?? 0;
    for (const bytes of [Buffer.from('GET / HTTP/1.1\r\n\r\n'), Buffer.alloc(0)]) {
      const socket = await world.dial(port);
      socket.write(bytes);
      socket.resume();
      await once(socket, 'close');
    }
    expect(world.connector.snapshot().connections).toBe(0);
  });
});

describe('WebSocket', () => {
  let server: Server;
  const url = () => `ws://127.0.0.1:${(server.address() as AddressInfo).port}/mqtt`;

  async function startWebSocket(options?: WorldOptions): Promise<void> {
    await start(options);
    server = createServer();
    server.on('upgrade', (request, socket, head) =>
      world.connector.acceptWebSocket(request, socket, head),
    );
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
  }
  afterEach(async () => {
    await world.close();
    server.closeAllConnections();
    server.close();
  });

  test('devices connect, publish and receive messages', async () => {
    await startWebSocket();
    const port = (server.address() as AddressInfo).port;
    const client = await world.connect({ protocol: 'ws', port, path: '/mqtt' });
    const messages = collect(client);
    await client.subscribeAsync(`devices/${world.device.uuid}/down/#`, { qos: 1 });
    await client.publishAsync(`devices/${world.device.uuid}/up/state`, state, { qos: 2 });
    const message = { topic: 'display' as const, payload: { text: 'hi' } };
    world.store.bus.publish('down', { uuid: world.device.uuid, message });
    await until(() => messages.length === 1);
    expect(world.store.stored).toHaveLength(1);
    const closed = onceClosed(client);
    world.store.removeDevice(world.device.uuid);
    await closed;
  });

  test('acknowledgements that are due together are one frame, identifiers high byte first', async () => {
    await startWebSocket();
    world.store.isHolding = true;
    const socket = new WebSocket(url(), 'mqtt');
    const frames: Buffer[] = [];
    socket.on('message', (frame: Buffer) => frames.push(frame));
    await once(socket, 'open');
    socket.send(generate(connectPacket(world, { protocolVersion: 4 })));
    // CONNACK, in as many frames as it takes.
    await until(() => Buffer.concat(frames).length === 4);
    frames.length = 0;
    const topic = `devices/${world.device.uuid}/up/state`;
    for (const messageId of [1, 0x1234])
      socket.send(generate(publishPacket(topic, state, { qos: 1, messageId })));
    await until(() => world.store.held.length === 2);
    world.store.release();
    await until(() => frames.length > 0);
    expect(frames).toEqual([Buffer.from([0x40, 2, 0, 1, 0x40, 2, 0x12, 0x34])]);
    socket.terminate();
  });

  test('the subprotocol is mqtt', async () => {
    await startWebSocket();
    const socket = new WebSocket(url(), ['other', 'mqtt']);
    await once(socket, 'open');
    expect(socket.protocol).toBe('mqtt');
    socket.terminate();
  });

  test('text frames close the connection [MQTT-6.0.0-1]', async () => {
    await startWebSocket();
    const socket = new WebSocket(url(), 'mqtt');
    await once(socket, 'open');
    socket.send('hello');
    await once(socket, 'close');
    await until(() => world.connector.snapshot().connections === 0);
  });

  test.each([4, 5] as const)(
    'version %i: measurements are no larger than anything else, and CONNACK says so',
    async (protocolVersion) => {
      await startWebSocket({ limits: { maxMeasurementPacketBytes: 262_144 } });
      const port = (server.address() as AddressInfo).port;
      const client = world.open({ protocol: 'ws', port, path: '/mqtt', protocolVersion });
      const { properties } = await new Promise<IConnackPacket>((resolve) =>
        client.once('connect', resolve),
      );
      expect(properties?.maximumPacketSize).toBe(protocolVersion === 5 ? 65_536 : undefined);
      const closed = onceClosed(client);
      const payload = JSON.stringify({ sId: '0x1', val: 1 }).padEnd(70_000);
      client.publish(`devices/${world.device.uuid}/up/measurements`, payload, { qos: 1 }, () => {});
      await closed;
      expect(world.store.stored).toEqual([]);
    },
  );

  test.each([
    ['empty frames', (socket: WebSocket) => socket.send(Buffer.alloc(0))],
    ['pings', (socket: WebSocket) => socket.ping()],
    ['fragments', (socket: WebSocket) => socket.send('', { binary: true, fin: false })],
  ])('%s without end close the connection', async (_what, send) => {
    await startWebSocket();
    const socket = new WebSocket(url(), 'mqtt');
    socket.on('error', () => {});
    const closed = once(socket, 'close');
    await once(socket, 'open');
    while (socket.readyState === WebSocket.OPEN) {
      for (let n = 0; n < 1_000; n += 1) send(socket);
      await new Promise(setImmediate);
    }
    await closed;
    await until(() => world.connector.snapshot().connections === 0);
  });

  test('pings are answered', async () => {
    await startWebSocket();
    const socket = new WebSocket(url(), 'mqtt');
    await once(socket, 'open');
    socket.ping('are you there');
    const [data] = (await once(socket, 'pong')) as [Buffer];
    expect(data.toString()).toBe('are you there');
    socket.terminate();
  });

  test('a frame larger than any packet closes the connection', async () => {
    await startWebSocket();
    const socket = new WebSocket(url(), 'mqtt');
    socket.on('error', () => {});
    await once(socket, 'open');
    socket.send(Buffer.alloc(1_000_000));
    await once(socket, 'close');
    await until(() => world.connector.snapshot().connections === 0);
  });

  test('a client that opens it and says nothing is disconnected', async () => {
    await startWebSocket({ limits: { connectTimeoutMs: 50 } });
    const socket = new WebSocket(url(), 'mqtt');
    await once(socket, 'close');
    await until(() => world.counted.includes('refused timeout'));
  });
});

test('a taken port is an error, and nothing stays open', async () => {
  await start();
  const { store } = world;
  const taken = createNetServer().listen(0, '127.0.0.1');
  await once(taken, 'listening');
  const { port } = taken.address() as AddressInfo;
  await expect(startWorld({ tcp: { host: '127.0.0.1', port } })).rejects.toMatchObject({
    code: 'EADDRINUSE',
  });
  taken.close();
  expect(store.errors).toEqual([]);
});
