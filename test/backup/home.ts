import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import { loadConfig, type Config } from '../../src/config/config.ts';
import { startService } from '../../src/service.ts';
import { makeTemporaryDir } from '../support/cluster.ts';
import { emptyDatabase } from '../support/database.ts';
import type { DatabaseKind } from '../support/database.ts';

export type HomeKind = DatabaseKind | 'embedded';

/** A place for an installation: a data directory or a database, empty at first. */
export type Home = {
  kind: HomeKind;
  /** The environment of the service and the commands. */
  variables: Record<string, string>;
  remove(): Promise<void>;
};

export async function newHome(kind: HomeKind, secret: string | null): Promise<Home> {
  const dir = makeTemporaryDir();
  const database = kind === 'embedded' ? null : await emptyDatabase(kind);
  return {
    kind,
    variables: {
      DATA_DIR: join(dir, 'data'),
      ...(database && { DATABASE_URL: database.url }),
      ...(secret !== null && { SECRET: secret }),
    },
    async remove() {
      await database?.drop();
      rmSync(dir, { recursive: true });
    },
  };
}

export type Started = { url: string; mqttPort: number; close(): Promise<void> };

/** Starts the whole service at home, on free ports. */
export async function startAt(
  { variables }: Home,
  change: (config: Config) => Config = (config) => config,
): Promise<Started> {
  const local = '127.0.0.1';
  const config = await loadConfig({
    HTTP_HOST: local,
    HTTP_PORT: '0',
    MQTT_HOST: local,
    MQTT_PORT: '0',
    PUBLIC_HOST: local,
    ...variables,
  });
  const service = await startService(change(config), pino({ level: 'silent' }));
  const { http, mqtt } = service.addresses;
  return {
    url: `http://${local}:${http?.port ?? 0}`,
    mqttPort: mqtt?.port ?? 0,
    close: async () => void (await service.close()),
  };
}
