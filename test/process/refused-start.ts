import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer, type AddressInfo, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { expect } from 'vitest';
import { createRunFairly } from '../../src/accounts/passwords.ts';
import { runProgram } from '../journeys/process.ts';
import { makeTemporaryDir } from '../support/cluster.ts';

/** In every URL of these tests: no line may contain it. */
export const password = 'hunter2';

const common = {
  HTTP_HOST: '127.0.0.1',
  HTTP_PORT: '0',
  MQTT_HOST: '127.0.0.1',
  MQTT_PORT: '0',
  SECRET: 'a secret for tests that is long enough to be one',
  // No file can be created here: none of these starts should get that far.
  DATA_DIR: '/dev/null/data',
};

/** For starts that would wait because the database may be there later. All others must not wait. */
export function withoutWaiting(): Record<string, string> {
  const file = join(makeTemporaryDir(), 'config.json');
  writeFileSync(file, JSON.stringify({ database: { waitAtStartMs: 0 } }));
  return { CONFIG_FILE: file };
}

/** A start takes a second of one processor, so more at once would take longer, each and together. */
const inTurn = createRunFairly({ parallel: 2, perAddress: 2, maxWaiting: 100 });

/** Starts a program of the project, expects that it refuses as it should, and returns its lines. */
export function refusedLines(
  env: Record<string, string>,
  args = ['src/main.ts'],
): Promise<string[]> {
  return inTurn({ address: '', who: '' }, () => startRefused(env, args));
}

async function startRefused(env: Record<string, string>, args: string[]): Promise<string[]> {
  const startedMs = performance.now();
  const program = runProgram(process.execPath, args, { env: { ...common, ...env } });
  // A start that succeeds would never end.
  void program.printed(/"Ready\."/).then(
    () => program.child.kill('SIGKILL'),
    () => undefined,
  );
  const status = await program.ended();
  const seconds = (performance.now() - startedMs) / 1_000;
  const [stdout, stderr] = [program.stdout(), program.stderr()];
  expect(status, stdout + stderr).toBe(1);
  // The promise is 10 s. Loading the program alone may take that long on a machine that is busy with tests. The
  // program's own waits are asserted where they happen.
  expect(seconds).toBeLessThan(30);
  expect(stdout + stderr).not.toContain(password);
  expect(stderr).not.toMatch(/^ +at /m);
  expect(stdout).not.toContain('database.awaited');
  return stderr.trimEnd().split('\n');
}

/** The same with exactly one line. */
export async function refusedLine(env: Record<string, string>, args?: string[]): Promise<string> {
  const lines = await refusedLines(env, args);
  expect(lines).toHaveLength(1);
  return lines[0] ?? '';
}

export type Stranger = {
  port: number;
  /** Seconds since the first connection. */
  secondsSinceMet(): number;
  close(): void;
};

/** A server on a port of 127.0.0.1 that passes each connection to `meet`. */
export async function startStranger(meet: (socket: Socket) => void): Promise<Stranger> {
  const sockets = new Set<Socket>();
  let metMs: number | null = null;
  const server: Server = createServer((socket) => {
    sockets.add(socket);
    metMs ??= performance.now();
    socket.on('error', () => undefined);
    meet(socket);
  }).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    port: (server.address() as AddressInfo).port,
    secondsSinceMet: () => (performance.now() - (metMs ?? 0)) / 1_000,
    close() {
      server.close();
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** How strangers behave, by kind. */
export const strangers: Record<string, (socket: Socket) => void> = {
  silent: (socket) => void socket.resume(),
  closing: (socket) => void socket.end(),
  http: (socket) =>
    void socket.once('data', () =>
      socket.end('HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n'),
    ),
  ssh: (socket) => void socket.write('SSH-2.0-OpenSSH_9.2\r\n'),
  // Protocol 10, and the version as MySQL 8 sends it.
  mysql: (socket) => void socket.write(Buffer.from('4a0000000a382e302e333600', 'hex')),
  echo: (socket) => void socket.pipe(socket),
  // A parser of PostgreSQL's messages would take it for an endless error.
  rubbish: (socket) =>
    void socket.once('data', () =>
      socket.write(Buffer.from('E\0\0\0\x08\xff\xfe\xfd\xfc', 'latin1')),
    ),
};
