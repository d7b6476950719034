import { pino, type Logger } from 'pino';
import { loadConfig } from '../../src/config/config.ts';
import type { Config, Role } from '../../src/config/config.ts';
import { startService } from '../../src/service.ts';
import { testDatabase } from '../support/database.ts';
import type { DatabaseKind } from '../support/database.ts';
import type { Clocks } from '../../src/lib/clock-readings.ts';

export type TestService = {
  url: string;
  mqttPort: number;
  /** 0 without METRICS_PORT. */
  metricsPort: number;
  databaseUrl: string;
  close(): Promise<void>;
};

/** For `change`: builds the console and serves it with the rest. */
export const withConsole = (config: Config): Config => ({
  ...config,
  console: { ...config.console, enabled: true },
});

/** The whole service in this process, on a database of its own and free ports. */
export async function testService(
  variables: Record<string, string> = {},
  {
    kind,
    role,
    change = (config) => config,
    clocks,
    log = pino({ level: 'silent' }),
  }: {
    kind?: DatabaseKind;
    role?: Role;
    change?: (config: Config) => Config;
    clocks?: Clocks;
    log?: Logger;
  } = {},
): Promise<TestService> {
  const database = await testDatabase(kind);
  const config = await loadConfig(
    {
      HTTP_HOST: '127.0.0.1',
      HTTP_PORT: '0',
      MQTT_HOST: '127.0.0.1',
      MQTT_PORT: '0',
      PUBLIC_HOST: '127.0.0.1',
      SECRET: 'a secret that only this test knows, long enough',
      DATABASE_URL: database.url,
      ...variables,
    },
    role,
  );
  const service = await startService(
    // `withConsole` turns it on.
    change({
      ...config,
      // A busy machine is no reason to answer 503, as in support/database.ts.
      database: { ...config.database, connectTimeoutMs: 20_000 },
      console: { ...config.console, enabled: false },
      // What a busy machine finds out in time is not the same each time.
      purposes: { exploreMs: 0 },
    }),
    log,
    { clocks },
  );
  const { http, mqtt, metrics } = service.addresses;
  return {
    url: `http://127.0.0.1:${http?.port ?? 0}`,
    mqttPort: mqtt?.port ?? 0,
    metricsPort: metrics?.port ?? 0,
    databaseUrl: database.url,
    async close() {
      await service.close();
      await database.drop();
    },
  };
}
