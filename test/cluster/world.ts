import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { registerAccount } from '../../bench/api.ts';
import type { ConnectorSettings } from '../../src/config/settings.ts';
import { startFleet } from '../faults/load.ts';
import { witnessPurpose } from '../faults/messages.ts';
import { installOnHalf, registerDevices } from '../faults/register.ts';
import { prepareService } from '../faults/service-process.ts';
import type { ServiceProcess } from '../faults/service-process.ts';
import type { Witnessed } from '../faults/verdict.ts';
import { startWatch } from '../faults/watch/watch.ts';
import { startThrowAwayCluster } from '../support/cluster.ts';
import { startRedis } from '../support/redis.ts';

/** One installation of several processes, on a database and a Redis of its own. */
export type Installation = {
  apis: ServiceProcess[];
  /** In the order of the settings, followed by those that stand by. */
  connectors: ServiceProcess[];
  databaseUrl: string;
  /**
   * Starts devices under load, connected to this port and judged like any other load. `httpPort`: where some of them
   * send over HTTP. `watch`: adds devices whose alarms are judged, which needs webhooks on this machine.
   */
  startLoad(options: {
    port: number;
    httpPort?: number;
    devices: number;
    rate: number;
    watch?: boolean;
  }): Promise<Witnessed>;
  close(): Promise<void>;
};

export type InstallationOptions = {
  apis: number;
  connectors: ConnectorSettings[];
  /** Connectors that the test starts itself, by id. */
  startLater?: number[];
  /** Connectors that get a second process, by id. */
  standBys?: number[];
  /** In addition to config/default.ts. */
  settings?: object;
  /** Environment of all processes, in addition to what they need. */
  variables?: Record<string, string>;
};

export async function startInstallation(options: InstallationOptions): Promise<Installation> {
  const dir = mkdtempSync(join(tmpdir(), 'sensorium-cluster-'));
  const releases: (() => unknown)[] = [() => rmSync(dir, { recursive: true, force: true })];
  const close = async () => {
    const failures: unknown[] = [];
    for (const release of releases.splice(0).toReversed()) {
      try {
        await release();
      } catch (error) {
        failures.push(error);
      }
    }
    if (failures.length > 0) throw failures[0];
  };
  try {
    const cluster = await startThrowAwayCluster({ durable: true });
    releases.push(() => cluster.remove());
    const redis = await startRedis();
    releases.push(() => redis.kill());
    const configFile = join(dir, 'config.json');
    writeFileSync(
      configFile,
      JSON.stringify({ ...options.settings, connectors: options.connectors }),
    );
    const variables = {
      ...options.variables,
      DATABASE_URL: cluster.url(),
      REDIS_URL: redis.url,
      CONFIG_FILE: configFile,
    };
    const prepare = (...args: string[]) => prepareService({ dir, args, variables });
    const apis: ServiceProcess[] = [];
    for (let count = 0; count < options.apis; count++) apis.push(await prepare('api'));
    const connectors: ServiceProcess[] = [];
    const ids = [...options.connectors.map(({ id }) => id), ...(options.standBys ?? [])];
    for (const id of ids) connectors.push(await prepare('connector', '--id', String(id)));
    const all = [...apis, ...connectors];
    releases.push(() => Promise.all(all.map((service) => service.kill())));
    const later = options.startLater ?? [];
    const now = connectors.filter((_, place) => !later.includes(ids[place] ?? 0));
    await Promise.all([...apis, ...now].map((service) => service.start()));

    return {
      apis,
      connectors,
      databaseUrl: cluster.url(),
      async startLoad({ port, httpPort, devices: count, rate, watch: isWatched = false }) {
        const service = apis[0] as ServiceProcess;
        const { token: accountToken } = await registerAccount(service.url);
        const devices = await registerDevices(service.url, accountToken, count);
        const pId = await installOnHalf(service.url, accountToken, devices, witnessPurpose);
        const load = await startFleet({ dir, devices, port, httpPort, rate });
        releases.push(() => load.close());
        const { url } = service;
        const at = { url, mqttPort: port, databaseUrl: () => cluster.url() };
        const watch = isWatched ? await startWatch(at) : null;
        releases.push(() => watch?.close());
        return { load, devices, pId, accountToken, cluster, service, watch };
      },
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
