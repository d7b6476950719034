import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { connect, type Socket } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import fc from 'fast-check';
import { generate } from 'mqtt-packet';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { measureProxyHeader } from '../../connector/mqtt/listeners.ts';
import { RawClient } from '../connector/raw.ts';
import { hasOpenssl, makeCertificate } from '../support/certificate.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { configuration, openApp } from '../journeys/app.ts';
import type { Registration } from '../journeys/app.ts';
import { testService } from '../journeys/service.ts';
import type { TestService } from '../journeys/service.ts';

const line = Buffer.from('PROXY TCP4 203.0.113.7 127.0.0.1 51000 1883\r\n');
const version2 = (command: number, body: Buffer) =>
  Buffer.concat([
    Buffer.from('0d0a0d0a000d0a515549540a', 'hex'),
    Buffer.from([command, 0x11, body.length >> 8, body.length & 255]),
    body,
  ]);
const binary = version2(0x21, Buffer.from('cb0071077f0000010bb8075b', 'hex'));
const local = version2(0x20, Buffer.alloc(0));

describe('the header of a proxy', () => {
  it('ends where it says, wherever it is cut and whatever follows', () => {
    for (const header of [line, binary, local]) {
      fc.assert(
        fc.property(fc.uint8Array({ maxLength: 40 }), fc.nat(header.length - 1), (tail, cut) => {
          expect(measureProxyHeader(Buffer.concat([header, tail]))).toBe(header.length);
          expect(measureProxyHeader(header.subarray(0, cut))).toBeNull();
        }),
      );
    }
  });

  it.each([
    ['a CONNECT', Buffer.from([0x10, 12, 0, 4])],
    ['a line without an end', Buffer.from(`PROXY ${'x'.repeat(120)}`)],
    ['a line that is too long', Buffer.from(`PROXY ${'x'.repeat(120)}\r\n`)],
    ['an unknown command', version2(0x22, Buffer.alloc(12))],
    ['an endless one', version2(0x21, Buffer.alloc(60_000))],
  ])('is not %s', (_what, bytes) => expect(measureProxyHeader(bytes)).toBe(-1));
});

describe.skipIf(!hasOpenssl)('MQTT behind a proxy', () => {
  let service: TestService;
  let registration: Registration;
  const dir = makeTemporaryDir();
  const [certFile, keyFile] = [join(dir, 'crt'), join(dir, 'key')];
  let tlsPort = 0;

  beforeAll(async () => {
    await makeCertificate('localhost', { certFile, keyFile });
    service = await testService(
      { MQTTS_PORT: '0', TLS_CERT_FILE: certFile, TLS_KEY_FILE: keyFile },
      {
        change: (config) => ({
          ...config,
          connectors: [
            { kind: 'mqtt', id: 1, name: 'tls', protocol: 'mqtts', host: null, port: null },
          ],
          mqtt: { ...config.mqtt, trustedProxies: ['127.0.0.0/8'], connectTimeoutMs: 1_000 },
        }),
      },
    );
    const app = await openApp(service.url);
    registration = await app.call<Registration>('POST', '/v2/devices', configuration);
    tlsPort = registration.port;
  });
  afterAll(async () => {
    await service.close();
    rmSync(dir, { recursive: true, force: true });
  });

  const connectPacket = () =>
    generate({
      cmd: 'connect',
      protocolId: 'MQTT',
      protocolVersion: 4,
      clean: true,
      clientId: 'behind',
      keepalive: 30,
      username: registration.deviceAuthUuid,
      password: Buffer.from(registration.deviceAuthToken),
    });

  async function open(port = service.mqttPort): Promise<Socket> {
    const socket = connect({ port, host: '127.0.0.1', noDelay: true });
    socket.on('error', () => undefined);
    await once(socket, 'connect');
    return socket;
  }

  it.each([
    ['version 1', line],
    ['version 2', binary],
    ['version 2 for the proxy itself', local],
  ])('accepts %s in one piece with what follows', async (_what, header) => {
    const client = new RawClient(await open());
    client.socket.write(Buffer.concat([header, connectPacket()]));
    expect((await client.expect('connack'))[0]).toMatchObject({ returnCode: 0 });
    client.socket.destroy();
  });

  it('accepts a header that comes byte by byte', async () => {
    const client = new RawClient(await open());
    for (const byte of Buffer.concat([binary, connectPacket()])) {
      const flushed = new Promise((resolve) => client.socket.write(Buffer.from([byte]), resolve));
      await flushed;
    }
    expect((await client.expect('connack'))[0]).toMatchObject({ returnCode: 0 });
    client.socket.destroy();
  });

  it('accepts TLS after the header', async () => {
    const socket = await open(tlsPort);
    socket.write(binary);
    const secure = connectTls({ socket, rejectUnauthorized: false });
    const client = new RawClient(secure);
    await once(secure, 'secureConnect');
    secure.write(connectPacket());
    expect((await client.expect('connack'))[0]).toMatchObject({ returnCode: 0 });
    secure.destroy();
  });

  it('refuses clients that omit it, send nonsense or send nothing', async () => {
    for (const first of [connectPacket(), Buffer.from('PROXY\r'), Buffer.alloc(0)]) {
      const client = new RawClient(await open());
      if (first.length > 0) client.socket.write(first);
      await client.ended();
      expect(client.received).toEqual([]);
    }
  });

  it('believes nobody else', async () => {
    const direct = await testService();
    const client = new RawClient(await open(direct.mqttPort));
    client.socket.write(Buffer.concat([line, connectPacket()]));
    await client.ended();
    expect(client.received).toEqual([]);
    await direct.close();
  });
});
