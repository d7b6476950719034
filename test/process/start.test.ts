import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, afterEach, describe, expect, it } from 'vitest';
import { readPostmasterFile } from '../../src/db/embedded/cluster.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { runProgram, type Running } from '../journeys/process.ts';
import { blocksOf, getSection } from '../docs/readme.ts';
import { withoutWaiting } from './refused-start.ts';

const dir = makeTemporaryDir();
const dataDir = join(dir, 'data');
const started: Running[] = [];
// A service left by a failed test would keep its database running.
afterEach(async () => {
  for (const service of started.splice(0)) {
    if (service.child.exitCode === null) service.child.kill('SIGTERM');
    await service.ended();
  }
});
afterAll(() => rmSync(dir, { recursive: true }));

function start(env: Record<string, string>, args: string[] = []): Running {
  const service = runProgram(process.execPath, ['src/main.ts', ...args], {
    env: { HTTP_PORT: '0', MQTT_PORT: '0', HTTP_HOST: '127.0.0.1', ...env },
  });
  started.push(service);
  return service;
}

const ready = /"http":\{[^}]*"port":(\d+)[^\n]*"Ready\."/;

async function urlOf(service: Running): Promise<string> {
  const [, port] = await service.printed(ready);
  return `http://127.0.0.1:${port}`;
}

const credentials = JSON.stringify({ email: 'me@example.com', password: 'correct horse' });

async function post(url: string, path: string): Promise<number> {
  const headers = { 'Content-Type': 'application/json' };
  const answer = await fetch(url + path, { method: 'POST', headers, body: credentials });
  await answer.arrayBuffer();
  return answer.status;
}

/** Stops it with the signal, and returns its exit code. */
async function end(service: Running, signal: NodeJS.Signals): Promise<number> {
  service.child.kill(signal);
  return service.ended();
}

/** Its log lines until it was ready, except where it put its programs in a checkout of root. */
function messagesOf(service: Running): string[] {
  const lines = service.stdout().split('\n');
  const logged = lines.filter((line) => line.startsWith('{'));
  return logged
    .map((line) => withoutParticulars((JSON.parse(line) as { msg: string }).msg))
    .filter((message) => !message.startsWith('PostgreSQL cannot run as root'));
}

/** The lines of a first start in README.md. A terminal shows the same, without JSON. */
function messagesShown(): string[] {
  const [shown = ''] = blocksOf(getSection('Start'), 'text');
  const lines = [...shown.matchAll(/^\[[\d:]+\] INFO: (.*?)( \{.*)?$/gm)];
  return lines.map(([, message = '']) => withoutParticulars(message));
}

/** Without what differs between machines. */
function withoutParticulars(message: string): string {
  return message
    .replaceAll(/ in \S+ \(first/g, ' in <dir> (first')
    .replaceAll(/\d+\.\d+/g, '<version>');
}

describe('the service on a machine with nothing else', () => {
  it('starts, prints where it listens and what to try, and stops', async () => {
    const first = start({ DATA_DIR: dataDir });
    const url = await urlOf(first);
    await first.printed(/\/docs for the HTTP and MQTT reference\n/);
    const [, shown = ''] = first.stdout().split('Sensorium listens:');
    expect(shown).toContain('MQTT on ');
    expect(shown).toMatch(new RegExp(`curl ${url}/v2/accounts .*\n.*simulate.*${url}\n.*${url}`));
    expect(messagesOf(first)).toEqual(messagesShown());
    expect(await post(url, '/v2/accounts')).toBe(200);
    expect(await end(first, 'SIGINT')).toBe(0);
    expect(first.stderr()).toBe('');
  });

  it('starts again with its data, even after it was killed', async () => {
    const second = start({ DATA_DIR: dataDir });
    expect(await post(await urlOf(second), '/v2/accounts/login')).toBe(200);
    await end(second, 'SIGKILL');
    const third = start({ DATA_DIR: dataDir });
    expect(await post(await urlOf(third), '/v2/accounts/login')).toBe(200);
    // npm forwards the Ctrl-C that the terminal sent to both, so two signals count as one.
    third.child.kill('SIGINT');
    expect(await end(third, 'SIGINT')).toBe(0);
  });

  it('warns of secrets short enough to guess, and accepts them', async () => {
    const env = { BROKER_HOOK_SECRET: 'x'.repeat(31), BRIDGE_SECRET: 'x'.repeat(32) };
    const service = start({ DATA_DIR: dataDir, ...env });
    const url = await urlOf(service);
    const warned = service
      .stdout()
      .split('\n')
      .filter((line) => line.includes('"secret.short"'))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
    expect(warned).toMatchObject([{ variable: 'BROKER_HOOK_SECRET', advisedLength: 32 }]);
    const asked = await fetch(`${url}/connector/authenticate`, {
      method: 'POST',
      headers: {
        'Content-Type': 'application/json',
        Authorization: `Bearer ${env.BROKER_HOOK_SECRET}`,
      },
      body: JSON.stringify({ username: 'x', password: 'y', clientid: 'z' }),
    });
    expect(asked.status).toBe(200);
    expect(await end(service, 'SIGINT')).toBe(0);
  });

  it('completes its start and stops in order if it is asked to stop while starting', async () => {
    // A new directory for each attempt, because only the first start in it creates a database.
    const early = start({ DATA_DIR: join(mkdtempSync(join(dir, 'early-')), 'data') });
    await early.printed(/"database\.created"/);
    expect(await end(early, 'SIGTERM')).toBe(0);
    const messages = messagesOf(early);
    expect(messages).toContain('Ready.');
    expect(messages.at(-1)).toBe('Stopped.');
  });
});

/** It exits by itself with 1, after these lines and without a stack. */
async function expectRefusal(service: Running): Promise<string[]> {
  expect(await service.ended()).toBe(1);
  const lines = service.stderr().trim().split('\n');
  expect(lines.join('\n')).not.toMatch(/^ +at /m);
  return lines;
}

describe('the service does not start', () => {
  it('with a key that cannot be read, and leaves no database running', async () => {
    const push = { driver: 'apns', keyFile: '/nowhere', keyId: 'a', teamId: 'b', topic: 'c' };
    const configFile = join(dir, 'push.json');
    writeFileSync(configFile, JSON.stringify({ notifications: { push } }));
    const [line, ...more] = await expectRefusal(
      start({ DATA_DIR: dataDir, CONFIG_FILE: configFile }),
    );
    expect(line).toMatch(/^\/nowhere: /);
    expect(more).toEqual([]);
    expect(await readPostmasterFile(join(dataDir, 'postgresql'))).toBeNull();
  });

  it('with invalid settings, and lists all of them', async () => {
    const lines = await expectRefusal(
      start({ HTTP_PORT: 'http', LOG_LEVEL: 'loud', SECRET: 'short', DATABASE_URL: 'redis://x' }),
    );
    expect(lines.map((line) => line.split(':')[0])).toEqual([
      'HTTP_PORT',
      'DATABASE_URL',
      'LOG_LEVEL',
      'SECRET',
    ]);
  });

  it('on a data directory that is not writable', async () => {
    writeFileSync(join(dir, 'file'), '');
    // Below a file, and at the file itself.
    for (const dataDir of [join(dir, 'file', 'data'), join(dir, 'file')]) {
      const service = start({ DATA_DIR: dataDir });
      const [line, ...more] = await expectRefusal(service);
      expect(line).toMatch(/^DATA_DIR .* cannot be written \(it is a file, or inside one\)/);
      expect(more).toEqual([]);
      expect(service.stdout()).toBe('');
    }
  });

  it('if PostgreSQL cannot write what it needs, and names the directory', async () => {
    // Like a full disk: no file may be larger than 1 to 2 MB.
    const script = 'ulimit -f 2048; exec "$0" src/main.ts';
    const limited = runProgram('sh', ['-c', script, process.execPath], {
      env: { HTTP_PORT: '0', MQTT_PORT: '0', DATA_DIR: join(dir, 'full') },
    });
    started.push(limited);
    const [line, ...more] = await expectRefusal(limited);
    expect(line).toMatch(/^DATA_DIR .*\/full: PostgreSQL could not create a database there \(\S/);
    expect(more).toEqual([]);
  });

  it('with a database that is unreachable', async () => {
    const lines = await expectRefusal(
      start({
        DATABASE_URL: 'postgresql://nobody:hunter2@127.0.0.1:1/x',
        SECRET: 'x'.repeat(32),
        ...withoutWaiting(),
      }),
    );
    expect(lines.join()).toContain('DATABASE_URL');
    expect(lines.join()).not.toContain('hunter2');
  });

  it('with unknown arguments', async () => {
    expect(await expectRefusal(start({}, ['cloud']))).toEqual([
      'Unexpected arguments: cloud. Try --help.',
    ]);
    expect((await expectRefusal(start({}, ['connector'])))[0]).toContain('--id');
    expect(await expectRefusal(start({}, ['connector', '--id', '99']))).toEqual([
      '--id 99: config/ has no connector with that id; it has 1 (connector-1), 2 (connector-http).',
    ]);
    expect(await expectRefusal(start({}, ['--port', '1']))).toEqual([
      "Unknown option '--port'. Try --help.",
    ]);
  });

  it('but explains its usage', async () => {
    const help = start({}, ['--help']);
    expect(await help.ended()).toBe(0);
    expect(help.stdout()).toContain('MQTTS_PORT');
    expect(help.stdout()).toContain('connector --id N');
  });
});
