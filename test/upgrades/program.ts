import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { runProgram, type Running } from '../journeys/process.ts';

const local = '127.0.0.1';

export type ProgramOptions = {
  /** The variables that say where its database and its secret are. */
  variables: Record<string, string>;
  configFile: string;
  /** How far its clock is behind the machine's. */
  clockBehindMs?: number;
  /** `api` only serves requests: it delivers nothing and accepts no devices. */
  role?: 'all' | 'api';
  /** A checkout of another version to run instead of this one. */
  tree?: string;
  /** Where `runMigration` finds the migrations; the program's own if absent. */
  migrationsDir?: string;
};

export type Program = { url: string; mqttPort: number; stop(): Promise<void> };

const clock = ['--import', './test/upgrades/set-clock.ts'];

/** Starts the program, which may take long to be ready. */
export function runService({
  variables,
  configFile,
  clockBehindMs = 0,
  role,
  tree,
}: ProgramOptions) {
  return runProgram(
    process.execPath,
    [...clock, 'src/main.ts', ...(role === 'api' ? ['api'] : [])],
    {
      env: {
        HTTP_HOST: local,
        HTTP_PORT: '0',
        MQTT_HOST: local,
        MQTT_PORT: '0',
        PUBLIC_HOST: local,
        CONFIG_FILE: configFile,
        CLOCK_BEHIND_MS: String(clockBehindMs),
        ...variables,
      },
      ...(tree === undefined ? {} : { cwd: tree }),
    },
  );
}

/** Runs only the part of the program that migrates, and ends when that is done. */
export function runMigration({ variables, clockBehindMs = 0, migrationsDir }: ProgramOptions) {
  const dir: Record<string, string> =
    migrationsDir === undefined ? {} : { MIGRATIONS_DIR: migrationsDir };
  return runProgram(process.execPath, [...clock, 'test/upgrades/migrate-only.ts'], {
    env: { CLOCK_BEHIND_MS: String(clockBehindMs), ...dir, ...variables },
  });
}

/** Its addresses, once it is ready. Throws with its output if it ends instead. */
export async function whenReady(running: Running): Promise<Program> {
  const [line] = await running.printed(/^\{.*"Ready\."\}$/m);
  const { http, mqtt } = JSON.parse(line) as Record<'http' | 'mqtt', { port: number } | undefined>;
  return {
    url: `http://${local}:${http?.port ?? 0}`,
    mqttPort: mqtt?.port ?? 0,
    async stop() {
      running.child.kill('SIGTERM');
      const code = await running.ended();
      if (code !== 0) throw new Error(`It ended with ${code}: ${running.stderr()}`);
    },
  };
}

export async function startProgram(options: ProgramOptions): Promise<Program> {
  return whenReady(runService(options));
}

const aCenturyDays = 36_500;

/**
 * Writes the settings with which fixtures are made and compared. Nothing in a fixture is ever too old, because it is
 * used for years. The quotas are small, so that some notifications are held back.
 */
export async function writeConfig(dir: string, smsUrl: string): Promise<string> {
  const secretFile = join(dir, 'webhook-secret');
  await writeFile(secretFile, 'shared with the webhook');
  const configFile = join(dir, 'config.json');
  const settings = {
    retention: { eventsDays: aCenturyDays, measurementsDays: aCenturyDays },
    quotas: { smsPerDay: 6 },
    notifications: {
      pollIntervalMs: 100,
      retentionDays: aCenturyDays,
      sms: { driver: 'webhook', url: smsUrl, secretFile, forAll: true },
      // The receivers of fixtures are on this machine.
      webhooks: { allowPrivateAddresses: true },
    },
  };
  await writeFile(configFile, JSON.stringify(settings));
  return configFile;
}
