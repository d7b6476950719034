import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { startFlags } from '../test/support/start-command.ts';
import { startProgram, type Program } from './program.ts';

export type BenchService = {
  pid: number;
  mqttPort: number;
  baseUrl: string;
  stop: () => Promise<void>;
};

export type ServiceOptions = {
  databaseUrl: string;
  redisUrl: string | null;
  /** The checkout to run; absent: SENSORIUM_BENCH_TREE, or this one. */
  tree?: string;
  /** Differences from the defaults; absent: the raised limits. */
  settings?: object;
  /** For a database that is used again; absent: one for this run only. */
  secret?: string;
};

/**
 * Differences from the defaults. Rates of devices, connections and requests, and quotas, are raised; otherwise the
 * bench would measure them.
 */
export const raisedLimits = {
  mqtt: {
    messagesPerSecond: 1_000_000,
    messagesBurst: 1_000_000,
    measurementsPerSecond: 1_000_000,
    connectsPerSecond: 1_000_000,
    // All devices of the bench connect from one address.
    connectingPerAddress: 1_000_000,
    waitingPerAddress: 1_000_000,
    reconnectsPerSecond: 1_000_000,
    reconnectsBurst: 1_000_000,
  },
  quotas: {
    devices: 1_000_000,
    devicesPerDay: 1_000_000,
    connections: 1_000_000,
    eventsPerSecond: 1_000_000,
    measurementsPerSecond: 1_000_000_000,
    eventsPerDay: 1_000_000_000,
    storedBytes: 1_000_000_000_000,
    requestsPerSecond: 1_000_000,
    requestsBurst: 1_000_000,
  },
};

type Limits = Record<string, Record<string, number>>;

const ownTree = process.env['SENSORIUM_BENCH_TREE'] ?? new URL('..', import.meta.url).pathname;
const ownSecret = randomBytes(32).toString('hex');

/** Starts the service in a process, with the flags of `npm start`, on free ports. */
export async function startBenchService({
  databaseUrl,
  redisUrl,
  tree = ownTree,
  settings,
  secret = ownSecret,
}: ServiceOptions): Promise<BenchService> {
  const dir = mkdtempSync(join(tmpdir(), 'sensorium-bench-'));
  const configFile = join(dir, 'bench.json');
  writeFileSync(configFile, JSON.stringify(settings ?? (await limitsFor(tree))));
  const program = await startProgram({
    command: process.execPath,
    // SENSORIUM_BENCH_NODE_ARGS adds flags for a profile: --cpu-prof …
    args: [...startFlags(tree), ...profilingArgs(), join(tree, 'src/main.ts')],
    cwd: tree,
    env: {
      DATABASE_URL: databaseUrl,
      REDIS_URL: redisUrl ?? '',
      SECRET: secret,
      HTTP_HOST: '127.0.0.1',
      MQTT_HOST: '127.0.0.1',
      HTTP_PORT: '0',
      MQTT_PORT: '0',
      PUBLIC_HOST: '127.0.0.1',
      CONFIG_FILE: configFile,
      DATA_DIR: dir,
    },
    isReady: (line) => line['msg'] === 'Ready.',
  });
  return {
    pid: program.pid,
    mqttPort: portOf(program, 'mqtt'),
    baseUrl: `http://127.0.0.1:${portOf(program, 'http')}`,
    async stop() {
      await program.stop();
      rmSync(dir, { recursive: true, force: true });
    },
  };
}

/** The raised limits that a checkout knows, because it refuses unknown settings. */
export async function limitsFor(tree = ownTree): Promise<Limits> {
  const url = pathToFileURL(join(tree, 'config/default.ts')).href;
  const { default: known } = (await import(url)) as { default: Record<string, object> };
  const sections = Object.entries(raisedLimits).map(([section, limits]): [string, object] => {
    const has = known[section] ?? {};
    return [section, Object.fromEntries(Object.entries(limits).filter(([name]) => name in has))];
  });
  return Object.fromEntries(sections.filter(([section]) => section in known)) as Limits;
}

function profilingArgs(): string[] {
  return (process.env['SENSORIUM_BENCH_NODE_ARGS'] ?? '').split(' ').filter((arg) => arg !== '');
}

function portOf(program: Program, name: 'mqtt' | 'http'): number {
  const address = program.ready[name] as { port: number } | undefined;
  if (!address) throw new Error(`The service does not say where ${name} listens.`);
  return address.port;
}
