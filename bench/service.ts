import { randomBytes } from 'node:crypto';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { startFlags } from '../test/harness/start-command.ts';
import { startProgram, type Program } from './program.ts';

export type BenchService = {
  pid: number;
  mqttPort: number;
  baseUrl: string;
  stop: () => Promise<void>;
};

export type ServiceOptions = { databaseUrl: string; redisUrl: string | null };

/**
 * What differs from the defaults. The rates of one device and of new connections, and what one account
 * may have and ask, protect an installation; here they would be what is measured.
 */
export const raisedLimits = {
  mqtt: {
    messagesPerSecond: 1_000_000,
    messagesBurst: 1_000_000,
    measurementsPerSecond: 1_000_000,
    connectsPerSecond: 1_000_000,
  },
  quotas: {
    devices: 1_000_000,
    devicesPerDay: 1_000_000,
    requestsPerSecond: 1_000_000,
    requestsBurst: 1_000_000,
    eventsPerDay: 1_000_000_000,
  },
};

const project = new URL('..', import.meta.url).pathname;
const secret = randomBytes(32).toString('hex');

/** Starts the service as a process of its own, as `npm start` does, on any free ports. */
export async function startBenchService({
  databaseUrl,
  redisUrl,
}: ServiceOptions): Promise<BenchService> {
  const dir = mkdtempSync(join(tmpdir(), 'sensorium-bench-'));
  const configFile = join(dir, 'bench.json');
  const tree = process.env['SENSORIUM_BENCH_TREE'] ?? project;
  writeFileSync(configFile, JSON.stringify(limitsFor(tree)));
  const program = await startProgram({
    command: process.execPath,
    // SENSORIUM_BENCH_NODE_ARGS adds what a profile needs: --cpu-prof …
    args: [...startFlags(), ...profilingArgs(), join(tree, 'src/main.ts')],
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

/** Those that it knows: the tree may be an earlier version's. */
function limitsFor(tree: string): Partial<typeof raisedLimits> {
  const { quotas, ...earlier } = raisedLimits;
  const settings = readFileSync(join(tree, 'config/default.ts'), 'utf8');
  return settings.includes('quotas: {') ? { ...earlier, quotas } : earlier;
}

function profilingArgs(): string[] {
  return (process.env['SENSORIUM_BENCH_NODE_ARGS'] ?? '').split(' ').filter((arg) => arg !== '');
}

function portOf(program: Program, name: 'mqtt' | 'http'): number {
  const address = program.ready[name] as { port: number } | undefined;
  if (!address) throw new Error(`The service does not say where ${name} listens.`);
  return address.port;
}
