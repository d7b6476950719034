import { setTimeout as sleep } from 'node:timers/promises';
import type { Connector } from '../connector/mqtt/server.ts';
import { type Console, startApi, startConsole } from './assembly/api.ts';
import {
  createBudget,
  createIngress,
  createReadiness,
  createDisposables,
  runStep,
  type StopBudget,
} from './assembly/lifecycle.ts';
import {
  type DeviceServices,
  inFrontOf,
  startConnectorHttp,
  startDeviceServices,
  upgradesOf,
} from './assembly/devices.ts';
import { checkRedisOf, startShared, type Shared } from './assembly/shared.ts';
import { findDatabase } from './assembly/storage.ts';
import type { Config } from './config/config.ts';
import { explainFailure } from './db/errors.ts';
import { startHealth } from './http/health.ts';
import type { HttpServer } from './http/server.ts';
import { startMetrics } from './metrics/observe.ts';
import { monotonicClock, systemClock } from './lib/clock.ts';
import { pause } from './lib/wait.ts';
import type { Clocks } from './lib/clock-readings.ts';
import type { Log, ServiceLog } from './log/logger.ts';
import { checkPorts } from './process/check.ts';
import type { Addresses } from './process/signals.ts';
import { describeStartError, mayPass } from './start-error.ts';

export type Service = {
  /** The addresses on which it listens. */
  addresses: Addresses;
  /** Reloads the certificate of MQTT over TLS, if this process uses it. */
  reloadCertificate(): Promise<void>;
  /**
   * Reports that it is not ready, and keeps serving for `delayMs`, so that a load balancer notices. Then it stops
   * accepting, stores and answers work under way, and releases everything. All of that ends within `totalMs`
   * (`config.stopTimeoutMs`): each step has a share of it, and one that takes longer is abandoned. Never rejects.
   * Returns the names of steps that failed or were abandoned.
   */
  close(options?: { delayMs?: number; totalMs?: number }): Promise<string[]>;
};

export type StartOptions = {
  /** Called once when a later version has moved the tables: from then on nothing can be stored here. */
  onMoved?: (lines: string[]) => void;
  /** Absent: the database's clock, and this machine's. */
  clocks?: Clocks | undefined;
  /** Ends the wait for a database that is away. The start then rejects with the reason for the wait. */
  signal?: AbortSignal;
};

/** The part of the time for a stop that belongs to no step, for example because the processor is busy. */
const reserveMs = 500;

type Listeners = {
  connector: Connector | null;
  http: { port: number } | null;
  metrics: { port: number } | null;
  health: { port: number } | null;
};

/**
 * Starts the part of the service that `config.role` names. If the database is away, tries again for
 * `config.database.waitAtStartMs`. Leaves nothing behind if it rejects.
 */
export async function startService(
  config: Config,
  log: ServiceLog,
  { onMoved = () => undefined, clocks, signal = new AbortController().signal }: StartOptions = {},
): Promise<Service> {
  await checkPorts(config);
  let readiness = createReadiness();
  const stopLog = log.child({ component: 'service' });
  const disposables = createDisposables(stopLog);
  const ingress = createIngress(stopLog);
  // Starts first and stops last, so that it answers while the service starts and stops.
  const health = config.healthListen
    ? await startHealth({
        ...config.healthListen,
        listUnready: () => readiness.listUnready(),
        log: log.child({ component: 'health' }),
        clock: clocks?.clock ?? systemClock,
      })
    : null;
  const { stopTimeoutMs } = config;
  /** `keep`: how many of the first acquired items to keep. */
  const giveBack = async (budget: StopBudget, keep: number) => [
    ...(await ingress.close(budget)),
    ...(await disposables.disposeAll(budget, keep)),
  ];
  const close: Service['close'] = async ({ delayMs = 0, totalMs = stopTimeoutMs } = {}) => {
    const budget = createBudget(totalMs - reserveMs);
    readiness.stopping();
    await sleep(Math.min(delayMs, budget.share(1)));
    const unfinished = await giveBack(budget, 0);
    const probes = { name: 'health', run: async () => health?.close(0) };
    return [...unfinished, ...(await runStep(probes, reserveMs / 2, stopLog))];
  };
  const listen = async (connectionString: string, webConsole: Console | null) => {
    const shared = await startShared(config, log, {
      disposables,
      ingress,
      readiness,
      connectionString,
      onMoved,
      clocks,
    });
    const devices = config.role.name === 'api' ? null : await startDeviceServices(shared);
    const connector = devices?.connector ?? null;
    // A process with a connector of its own is useful without the broker.
    if (devices && connector === null && devices.uplink === null)
      readiness.add('bridge', devices.isBridgeReady);
    const http = await startHttpOf(shared, devices, webConsole);
    const metrics = config.metricsListen
      ? await startMetrics(shared.metrics.registry, config.metricsListen)
      : null;
    if (metrics) disposables.add('metrics', () => metrics.close());
    return { connector, http, metrics, health };
  };
  try {
    const webConsole = startConsole(config, log, disposables);
    await checkRedisOf(config, log);
    let connectionString: string | undefined;
    let kept = disposables.count();
    const listeners = await untilThere(
      async () => {
        try {
          // An embedded database keeps running between two attempts.
          connectionString ??= await findDatabase(config, log, disposables);
          kept = disposables.count();
          return await listen(connectionString, webConsole);
        } catch (error) {
          await giveBack(createBudget(stopTimeoutMs - reserveMs), kept);
          readiness = createReadiness();
          throw explainFailure(error);
        }
      },
      { waitMs: config.database.waitAtStartMs, log: log.child({ component: 'database' }), signal },
    );
    readiness.started();
    return {
      addresses: addressesOf(config, listeners),
      reloadCertificate: async () => listeners.connector?.reloadCertificate(),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}

/** Time between two attempts to start. */
const againMs = 1_000;

/**
 * Repeats the attempt while it fails because the database is away, for at most `waitMs`. Logs once that it waits, and
 * for what.
 */
async function untilThere<T>(
  attempt: () => Promise<T>,
  { waitMs, log, signal }: { waitMs: number; log: Log; signal: AbortSignal },
): Promise<T> {
  const endMs = monotonicClock() + waitMs;
  for (let isFirst = true; ; isFirst = false) {
    try {
      return await attempt();
    } catch (error) {
      if (!mayPass(error) || monotonicClock() + againMs > endMs) throw error;
      const why = describeStartError(error)?.join(' ');
      if (isFirst)
        log.warn(
          { event: 'database.awaited', why },
          `The database is unreachable; trying again for up to ${waitMs / 1_000} s.`,
        );
      await pause(againMs, signal);
      if (signal.aborted) throw error;
    }
  }
}

/** A connector process has HTTP only if its devices need it. */
async function startHttpOf(
  shared: Shared,
  devices: DeviceServices | null,
  webConsole: Console | null,
): Promise<HttpServer | null> {
  const { role, httpListen, webSocketListen, http } = shared.config;
  if (role.name !== 'connector') return startApi(shared, devices, webConsole);
  const { uplink = null, connector = null } = devices ?? {};
  if (uplink) return startConnectorHttp(shared, httpListen, inFrontOf(uplink));
  if (!connector || !webSocketListen) return null;
  return startConnectorHttp(shared, webSocketListen, upgradesOf(connector, http.trustedProxies));
}

function addressesOf(
  { role, httpListen, mqttListen, mqttsListen, webSocketListen, ...config }: Config,
  { connector, http, metrics, health }: Listeners,
): Addresses {
  const at = (listen: { host: string } | null, bound: { port: number } | null | undefined) =>
    listen && bound ? { host: listen.host, port: bound.port } : undefined;
  // In a connector process with MQTT, HTTP only serves WebSockets.
  const isWebSocket = role.name === 'connector' && connector !== null;
  return {
    http: isWebSocket ? undefined : at(httpListen, http),
    webSocket: isWebSocket ? at(webSocketListen, http) : undefined,
    mqtt: at(mqttListen, connector?.addresses.tcp),
    mqtts: at(mqttsListen, connector?.addresses.tls),
    metrics: at(config.metricsListen, metrics),
    health: at(config.healthListen, health),
  };
}
