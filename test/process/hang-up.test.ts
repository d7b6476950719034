import { once } from 'node:events';
import { copyFileSync, mkdirSync, rmSync, symlinkSync } from 'node:fs';
import { join } from 'node:path';
import { connect } from 'node:tls';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { hasOpenssl, makeCertificate } from '../support/certificate.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { testDatabase, type TestDatabase } from '../support/database.ts';
import { findProgram } from '../support/program.ts';
import { runProgram, type Running } from '../journeys/process.ts';
import { childrenOf, isRunning } from '../support/processes.ts';

const dir = makeTemporaryDir();
const file = (name: string) => join(dir, name);
const local = '127.0.0.1';
let database: TestDatabase;
let service: Running;

beforeAll(async () => {
  database = await testDatabase();
  mkdirSync(file('watched'));
  if (!hasOpenssl) return;
  for (const name of ['one', 'two'])
    await makeCertificate(name, { certFile: file(`${name}.crt`), keyFile: file(`${name}.key`) });
  // Links whose targets change, so that nothing changes in the watched directory.
  for (const kind of ['crt', 'key'])
    symlinkSync(file(`used.${kind}`), file(`watched/used.${kind}`));
});
afterEach(async () => {
  service.child.kill('SIGKILL');
  await service.ended();
});
afterAll(async () => {
  await database.drop();
  rmSync(dir, { recursive: true });
});

function use(name: string): void {
  for (const kind of ['crt', 'key']) copyFileSync(file(`${name}.${kind}`), file(`used.${kind}`));
}

const tls = {
  MQTTS_PORT: '0',
  TLS_CERT_FILE: file('watched/used.crt'),
  TLS_KEY_FILE: file('watched/used.key'),
};

function start(
  env: Record<string, string>,
  wrap = (program: string, args: string[]) => [program, ...args],
) {
  const [program = '', ...args] = wrap(process.execPath, ['src/main.ts']);
  service = runProgram(program, args, {
    env: {
      DATABASE_URL: database.url,
      SECRET: 'a secret for tests that is long enough to be one',
      HTTP_HOST: local,
      HTTP_PORT: '0',
      MQTT_HOST: local,
      MQTT_PORT: '0',
      ...env,
    },
  });
  return service;
}

/** The name in the certificate that the server shows. */
async function shownName(port: number): Promise<unknown> {
  const socket = connect({ port, host: local, rejectUnauthorized: false });
  await once(socket, 'secureConnect');
  const { subject } = socket.getPeerCertificate();
  socket.destroy();
  return subject.CN;
}

describe.skipIf(!hasOpenssl)('SIGHUP where a certificate is configured', () => {
  it('reloads it, and the service continues', async () => {
    use('one');
    const { child, printed, stdout, ended } = start(tls);
    const [, port] = await printed(/"mqtts":\{[^}]*"port":(\d+)[^\n]*"Ready\."/);
    expect(await shownName(Number(port))).toBe('one');
    use('two');
    child.kill('SIGHUP');
    await printed(/"certificate\.reloaded"/);
    expect(stdout()).toContain('SIGHUP: reloading the certificate.');
    expect(await shownName(Number(port))).toBe('two');
    child.kill('SIGTERM');
    expect(await ended()).toBe(0);
  });

  const script = findProgram('script');
  it.skipIf(script === null || process.platform !== 'linux')(
    'ends the service on a terminal, which was closed',
    async () => {
      use('one');
      const onTerminal = (program: string, args: string[]) => {
        const command = `exec ${[program, ...args].join(' ')}`;
        return [script ?? '', '--quiet', '--return', '--command', command, '/dev/null'];
      };
      const { child, printed, ended } = start(tls, onTerminal);
      await printed(/Ready\./);
      const [pid = 0] = childrenOf(child.pid ?? 0);
      process.kill(pid, 'SIGHUP');
      await printed(/SIGHUP: finishing work in progress/);
      expect(await ended()).toBe(0);
      expect(isRunning(pid)).toBe(false);
    },
  );
});

it('SIGHUP ends a service without a certificate', async () => {
  const { child, printed, stdout, ended } = start({});
  await printed(/"Ready\."/);
  child.kill('SIGHUP');
  expect(await ended()).toBe(0);
  expect(stdout()).toContain('SIGHUP: finishing work in progress.');
});
