import { connectAsync } from 'mqtt';
import { expect } from 'vitest';
import type { Sql } from '../../src/db/sql.ts';
import type { Registration } from '../journeys/app.ts';
import { configuration, send } from '../journeys/app.ts';
import { runProgram, type Running } from '../journeys/process.ts';

/** The service as a process of its own, on free ports. */
export type Started = { url: string; mqttPort: number; process: Running; stop(): Promise<void> };

type Variables = Record<string, string>;

const ports = /"http":\{[^}]*"port":(\d+)\}[^\n]*"mqtt":\{[^}]*"port":(\d+)\}[^\n]*"Ready\."/;

/** Starts programs, and finally ends those that a failed test has left. */
export function createPrograms() {
  const running = new Set<Running>();

  function run(args: string[], env: Variables, input = ''): Running {
    const program = runProgram(process.execPath, args, { env, input });
    running.add(program);
    return program;
  }

  const startService = (env: Variables) =>
    run(['src/main.ts'], {
      HTTP_HOST: '127.0.0.1',
      HTTP_PORT: '0',
      MQTT_HOST: '127.0.0.1',
      MQTT_PORT: '0',
      PUBLIC_HOST: '127.0.0.1',
      ...env,
    });

  async function stop(program: Running): Promise<void> {
    if (program.child.exitCode === null) program.child.kill('SIGTERM');
    await program.ended();
    running.delete(program);
  }

  return {
    /** Resolves when it is ready. */
    async start(env: Variables): Promise<Started> {
      const service = startService(env);
      const [, http, mqtt] = await service.printed(ports);
      const url = `http://127.0.0.1:${http}`;
      return { url, mqttPort: Number(mqtt), process: service, stop: () => stop(service) };
    },
    /** For processes that may never be ready. */
    launch: startService,
    /** Expects it to exit with 1. Returns its lines, which contain no stack trace. */
    async expectRefusal(env: Variables): Promise<string> {
      const service = startService(env);
      expect(await service.ended()).toBe(1);
      expect(service.stdout()).not.toContain('"Ready."');
      expect(service.stderr()).not.toMatch(/^ +at /m);
      return service.stderr();
    },
    async runSecret(env: Variables, args: string[], input = '') {
      const program = run(['src/cli/secret.ts', ...args], env, input);
      const status = await program.ended();
      return { status, stdout: program.stdout(), stderr: program.stderr() };
    },
    async runCommand(name: 'backup' | 'restore', env: Variables, args: string[]) {
      const program = run([`src/cli/${name}.ts`, ...args], env);
      expect(await program.ended(), program.stderr()).toBe(0);
      return program.stdout();
    },
    async stopAll() {
      await Promise.all([...running].map(stop));
    },
  };
}

const credentials = { email: 'me@example.com', password: 'correct horse' };

export async function logIn(url: string): Promise<string> {
  const answer = await send(`${url}/v2/accounts/login`, 'POST', credentials);
  expect(answer.status).toBe(200);
  return ((await answer.json()) as { accountAuthToken: string }).accountAuthToken;
}

/** Creates what depends on the secret: an account with a device and two sessions, of its registration and a login. */
export async function fill(url: string) {
  expect((await send(`${url}/v2/accounts`, 'POST', credentials)).status).toBe(200);
  const token = await logIn(url);
  const answer = await send(`${url}/v2/devices`, 'POST', configuration, token);
  expect(answer.status).toBe(200);
  return { token, device: (await answer.json()) as Registration };
}

/** The status of a call with this account token. */
export async function statusOf(url: string, token: string): Promise<number> {
  return (await send(`${url}/v2/accounts`, 'GET', undefined, token)).status;
}

/** Whether a process accepts the device's token. */
export async function letsIn(mqttPort: number, device: Registration): Promise<boolean> {
  try {
    const client = await connectAsync(`mqtt://127.0.0.1:${mqttPort}`, {
      username: device.deviceAuthUuid,
      password: device.deviceAuthToken,
      reconnectPeriod: 0,
    });
    await client.endAsync();
    return true;
  } catch (error) {
    expect(String(error)).toMatch(/Not authorized|Bad username or password/i);
    return false;
  }
}

/** The database's check values, newest first, with the time at which they were recorded. */
export async function readChecks(sql: Sql): Promise<{ value: string; noted_at: number }[]> {
  const { rows } = await sql.query<{ value: string; noted_at: number }>(
    'select value, noted_at from secret_check order by place',
  );
  return rows;
}
