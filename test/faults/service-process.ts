import { spawn } from 'node:child_process';
import type { ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, openSync, readdirSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findFreePort } from '../../src/db/embedded/cluster.ts';
import { memoryOf } from '../support/processes.ts';
import { startFlags } from '../support/start-command.ts';

const project = new URL('../..', import.meta.url).pathname;

/** The service in a process, on the same ports after each restart. */
export type ServiceProcess = {
  url: string;
  mqttPort: number;
  /** The port of MQTT over WebSocket, if the process is a connector. */
  webSocketPort: number;
  /** The port of /livez and /readyz, whatever the process runs. */
  healthPort: number;
  pid(): number;
  start(): Promise<void>;
  /** Sends SIGKILL. Resolves when the process is gone. */
  kill(): Promise<void>;
  /** Sends SIGTERM. Resolves with the exit code. */
  terminate(): Promise<number | null>;
  /** Resolves with the exit code when the process has ended by itself. */
  ended(): Promise<number | null>;
  isRunning(): boolean;
  /** What it has logged since it was last started. */
  log(): string;
  residentBytes(): number;
  openHandles(): number;
};

export type ServiceProcessOptions = {
  dir: string;
  args?: string[];
  variables: Record<string, string>;
  /** How many files it may open; absent: as many as this process. */
  openFiles?: number | undefined;
};

export async function prepareService(options: ServiceProcessOptions): Promise<ServiceProcess> {
  const [httpPort, mqttPort] = [await findFreePort(), await findFreePort()];
  const [healthPort, webSocketPort] = [await findFreePort(), await findFreePort()];
  const url = `http://127.0.0.1:${httpPort}`;
  const env = {
    PATH: process.env['PATH'] ?? '',
    HTTP_HOST: '127.0.0.1',
    HTTP_PORT: String(httpPort),
    MQTT_HOST: '127.0.0.1',
    MQTT_PORT: String(mqttPort),
    MQTT_WS_PORT: String(webSocketPort),
    HEALTH_PORT: String(healthPort),
    PUBLIC_HOST: '127.0.0.1',
    NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] ?? '',
    SECRET: 'a secret that only this test knows, long enough',
    DATA_DIR: join(options.dir, 'data'),
    ...options.variables,
  };
  const command = [...startFlags(), 'src/main.ts'];
  const logPath = join(options.dir, `service-${httpPort}.log`);
  let child: ChildProcess | null = null;
  let startedAt = 0;
  const ended = async () => {
    if (child && child.exitCode === null && child.signalCode === null) await once(child, 'exit');
    return child?.exitCode ?? null;
  };
  const isRunning = () => child !== null && child.exitCode === null && child.signalCode === null;

  return {
    url,
    mqttPort,
    webSocketPort,
    healthPort,
    pid: () => child?.pid ?? 0,
    async start() {
      const log = openSync(logPath, 'a');
      const before = readyCount(logPath);
      startedAt = statSync(logPath).size;
      const args = [...command, ...(options.args ?? [])];
      const [program, ...limit] = limitFiles(options.openFiles, process.execPath);
      child = spawn(program, [...limit, ...args], {
        cwd: project,
        env,
        stdio: ['ignore', log, log],
      });
      closeSync(log);
      while (readyCount(logPath) === before) {
        if (!isRunning()) throw new Error(`The service ended: ${tail(logPath)}`);
        await delay(20);
      }
    },
    async kill() {
      child?.kill('SIGKILL');
      await ended();
    },
    async terminate() {
      child?.kill('SIGTERM');
      return ended();
    },
    ended,
    isRunning,
    log: () => readFileSync(logPath, 'utf8').slice(startedAt),
    residentBytes: () => memoryOf(child?.pid ?? 0, 'VmRSS') ?? 0,
    openHandles: () => readdirSync(`/proc/${child?.pid ?? 0}/fd`).length,
  };
}

/** The command that starts the program with a limit of open files. */
const limitFiles = (openFiles: number | undefined, program: string): [string, ...string[]] =>
  openFiles === undefined
    ? [program]
    : ['/bin/sh', '-c', `ulimit -n ${openFiles}; exec "$0" "$@"`, program];

const readyCount = (path: string) => readFileSync(path, 'utf8').split('"msg":"Ready."').length;
const tail = (path: string) => readFileSync(path, 'utf8').split('\n').slice(-12).join('\n');
