import { execFile, execFileSync } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, afterEach, describe, expect, test } from 'vitest';
import { findFreePort } from '../../../src/db/embedded/cluster.ts';
import { hasOpenssl } from '../../support/certificate.ts';
import { makeTemporaryDir } from '../../support/cluster.ts';
import { hasMosquitto, startMosquitto } from '../../support/mosquitto.ts';
import { prepareBridge } from './harness.ts';
import type { TestBridge } from './harness.ts';

const dir = makeTemporaryDir();
const ends: (() => Promise<unknown>)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});
afterAll(() => rmSync(dir, { recursive: true, force: true }));

function run(address: Parameters<typeof prepareBridge>[0]): TestBridge {
  const bridge = prepareBridge(address);
  ends.push(bridge.close);
  bridge.start();
  return bridge;
}

async function expectLine(bridge: TestBridge, reason: string, message: RegExp): Promise<void> {
  await expect.poll(() => bridge.lines.length, { timeout: 60_000 }).toBeGreaterThan(0);
  expect(bridge.lines).toEqual([
    expect.objectContaining({ reason, message: expect.stringMatching(message) }),
  ]);
}

describe.skipIf(!hasMosquitto)('Mosquitto', () => {
  test('that refuses the password is named, and served once it accepts it', async () => {
    const passwordFile = join(dir, 'passwords');
    const setPassword = (password: string) => {
      execFileSync('mosquitto_passwd', ['-b', '-c', passwordFile, 'us', password]);
      execFileSync('chmod', ['644', passwordFile]);
    };
    setPassword('another');
    const broker = await startMosquitto(['allow_anonymous false', `password_file ${passwordFile}`]);
    ends.push(broker.remove);
    const bridge = run({ url: broker.url, username: 'us', password: 'right' });
    await expectLine(bridge, 'refused-credentials', /user name \("us"\) or password/);
    expect(JSON.stringify(bridge.lines)).not.toContain('right');
    setPassword('right');
    process.kill(broker.pid(), 'SIGHUP');
    await expect.poll(() => bridge.status.read().isConnected, { timeout: 60_000 }).toBe(true);
    expect(bridge.lines.map(({ level }) => level)).toEqual(['error', 'info']);
  });

  test('that is not there is named, without the user name and password in its address', async () => {
    const port = await findFreePort();
    const bridge = run({ url: `mqtt://us:secret@127.0.0.1:${port}` });
    await expectLine(
      bridge,
      'unreachable',
      new RegExp(`cannot be reached at mqtt://127.0.0.1:${port}:`),
    );
    expect(JSON.stringify(bridge.lines)).not.toContain('secret');
  });

  describe.skipIf(!hasOpenssl)('over TLS', () => {
    const openssl = (command: string) =>
      promisify(execFile)('openssl', command.split(' '), { cwd: dir });
    const key = '-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes';

    /** A broker whose certificate is for this name, signed by its own authority. */
    async function startTls(name: string, days = '2') {
      const authority = '-subj /CN=authority -keyout ca.key -out ca.pem';
      await openssl(`req -x509 ${key} -days 2 ${authority}`);
      await openssl(`req ${key} -subj /CN=broker -keyout key.pem -out csr.pem`);
      writeFileSync(join(dir, 'names'), `subjectAltName=${name}\n`);
      const signer = '-CA ca.pem -CAkey ca.key -CAcreateserial';
      const paper = `-in csr.pem -extfile names -days ${days} -out cert.pem`;
      await openssl(`x509 -req ${signer} ${paper}`);
      const broker = await startMosquitto([
        'allow_anonymous true',
        `certfile ${join(dir, 'cert.pem')}`,
        `keyfile ${join(dir, 'key.pem')}`,
      ]);
      ends.push(broker.remove);
      return {
        broker,
        url: `mqtts://127.0.0.1:${broker.port}`,
        ca: readFileSync(join(dir, 'ca.pem')),
      };
    }

    test('with a certificate of an unknown authority', async () => {
      const { url, ca } = await startTls('IP:127.0.0.1');
      await expectLine(
        run({ url }),
        'certificate',
        /not signed by an authority .* set broker\.caFile/,
      );
      const trusting = run({ url, ca });
      await expect.poll(() => trusting.status.read().isConnected, { timeout: 60_000 }).toBe(true);
    });

    test('with a certificate for another name', async () => {
      const { url, ca } = await startTls('DNS:other.example.com');
      await expectLine(
        run({ url, ca }),
        'certificate',
        /is not valid for 127\.0\.0\.1: use the name/,
      );
    });

    test('with an expired certificate', async () => {
      const { url, ca } = await startTls('IP:127.0.0.1', '-1');
      await expectLine(run({ url, ca }), 'certificate', /expired or not valid yet: renew it/);
    });

    test('at a port without TLS', async () => {
      const broker = await startMosquitto();
      ends.push(broker.remove);
      const bridge = run({ url: `mqtts://127.0.0.1:${broker.port}` });
      await expectLine(bridge, 'closed-at-connect', /whether that port expects TLS/);
    });

    test('at a port with nothing but TLS', async () => {
      const { broker } = await startTls('IP:127.0.0.1');
      await expectLine(
        run({ url: broker.url }),
        'closed-at-connect',
        /whether that port expects TLS/,
      );
    });
  });
});

test('a broker that only speaks MQTT 3.1.1 is named', async () => {
  // CONNACK with return code 1, as brokers answer that do not know the version.
  const server = createServer((socket) => {
    socket.on('error', () => undefined);
    socket.once('data', () => socket.end(Buffer.from([0x20, 2, 0, 1])));
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ends.push(async () => {
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const bridge = run({ url: `mqtt://127.0.0.1:${port}` });
  await expectLine(bridge, 'protocol-version', /does not support MQTT 5.*enable MQTT 5/);
});
