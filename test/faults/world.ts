import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RegisteredAccount } from '../../bench/api.ts';
import { startThrowAwayCluster } from '../support/cluster.ts';
import type { Cluster } from '../support/cluster.ts';
import { urlOf } from '../support/template.ts';
import { startRedis } from '../support/redis.ts';
import type { Redis } from '../support/redis.ts';
import { startFleet } from './load.ts';
import type { Load } from './load.ts';
import { startProxy } from './proxy.ts';
import type { Proxy } from './proxy.ts';
import { registerWitnesses } from './register.ts';
import type { WitnessDevice } from './register.ts';
import { prepareService } from './service-process.ts';
import type { ServiceProcess } from './service-process.ts';
import { startWatch } from './watch/watch.ts';
import type { Watch } from './watch/watch.ts';

export type WorldOptions = {
  devices: number;
  /** Messages a second, of all devices together. */
  rate: number;
  timescaledb: boolean;
  redis?: boolean;
  /** Puts a proxy in this process before the database. Slow if thousands of devices keep the process busy. */
  databaseProxy?: boolean;
  /** Devices reach the service through a proxy in this process: two more open files for each. */
  deviceProxy?: boolean;
  /** Where PostgreSQL keeps its files, if not in a temporary directory. */
  databaseDir?: string;
  /** Settings that differ from config/default.ts. Without it webhooks on this machine are allowed. */
  configFile?: string;
  /** Runs devices whose alarms are judged. They need such webhooks. */
  watch?: boolean;
  /** How many accounts the devices belong to; 1 by default. */
  accounts?: number;
  /** More environment variables for the service. */
  variables?: Record<string, string>;
  /** How many files the service may open. */
  openFiles?: number | undefined;
};

/** A durable database, the service as a process, and devices under load. */
export type World = {
  dir: string;
  /** Another one after a failover. */
  cluster: Cluster;
  databaseProxy: Proxy | null;
  deviceProxy: Pick<Proxy, 'deafen' | 'heal'> | null;
  redis: Redis | null;
  service: ServiceProcess;
  devices: WitnessDevice[];
  /** Of the first account. */
  accountToken: string;
  accountEmail: string;
  accounts: [RegisteredAccount, ...RegisteredAccount[]];
  pId: string;
  load: Load;
  watch: Watch | null;
  close(): Promise<void>;
};

export async function startWorld(options: WorldOptions): Promise<World> {
  const dir = mkdtempSync(join(tmpdir(), 'sensorium-faults-'));
  const releases: (() => unknown)[] = [() => rmSync(dir, { recursive: true, force: true })];
  const close = async () => {
    for (const release of releases.splice(0).toReversed()) await release();
  };
  try {
    const cluster = await startThrowAwayCluster({
      timescaledb: options.timescaledb,
      durable: true,
      ...(options.databaseDir === undefined ? {} : { dir: options.databaseDir }),
    });
    const database = { cluster };
    releases.push(() => database.cluster.remove());
    const databaseProxy = options.databaseProxy ? await startProxy(cluster.port) : null;
    releases.push(() => databaseProxy?.close());
    const redis = options.redis ? await startRedis() : null;
    releases.push(() => redis?.kill());

    const databaseUrl = new URL(urlOf(cluster.url(), 'postgres'));
    if (databaseProxy) databaseUrl.port = String(databaseProxy.port);
    const service = await prepareService({
      dir,
      openFiles: options.openFiles,
      variables: {
        DATABASE_URL: databaseUrl.href,
        ...(redis ? { REDIS_URL: redis.url } : {}),
        CONFIG_FILE: options.configFile ?? writeSettings(dir),
        ...options.variables,
      },
    });
    await service.start();
    releases.push(() => service.kill());
    const servicePorts = { mqtt: service.mqttPort, http: Number(new URL(service.url).port) };
    const deviceProxy = options.deviceProxy ? await startDeviceProxy(servicePorts) : null;
    releases.push(() => deviceProxy?.close());

    const { accounts, devices, pId } = await registerWitnesses(service.url, {
      devices: options.devices,
      accounts: options.accounts ?? 1,
    });
    const { mqtt: port, http: httpPort } = deviceProxy?.ports ?? servicePorts;
    const load = await startFleet({ dir, devices, port, httpPort, rate: options.rate });
    releases.push(() => load.close());
    const { url, mqttPort } = service;
    const at = { url, mqttPort, httpPort: servicePorts.http, pollPort: httpPort };
    const watch = options.watch
      ? await startWatch({ ...at, databaseUrl: () => database.cluster.url() })
      : null;
    releases.push(() => watch?.close());
    const [{ token: accountToken, email: accountEmail }] = accounts;
    return Object.assign(database, {
      dir,
      databaseProxy,
      deviceProxy,
      redis,
      service,
      devices,
      accountToken,
      accountEmail,
      accounts,
      pId,
      load,
      watch,
      close,
    });
  } catch (error) {
    await close();
    throw error;
  }
}

type Ports = { mqtt: number; http: number };

/** Proxies for both ways in, which fail together. */
async function startDeviceProxy(to: Ports) {
  const [mqtt, http] = [await startProxy(to.mqtt), await startProxy(to.http)];
  return {
    ports: { mqtt: mqtt.port, http: http.port },
    deafen() {
      mqtt.deafen();
      http.deafen();
    },
    heal() {
      mqtt.heal();
      http.heal();
    },
    close: () => Promise.all([mqtt.close(), http.close()]),
  };
}

function writeSettings(dir: string): string {
  const file = join(dir, 'settings.json');
  const notifications = { webhooks: { allowPrivateAddresses: true } };
  // All devices have one address here, and those over HTTP up to three connections each.
  const http = { connectionsPerAddress: 20_000 };
  writeFileSync(file, JSON.stringify({ notifications, http }));
  return file;
}
