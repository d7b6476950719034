import { randomUUID } from 'node:crypto';
import type { IncomingMessage } from 'node:http';
import { Gauge } from 'prom-client';
import {
  devicesPrefix,
  type HttpConnector,
  startHttpConnector,
} from '../../connector/http/server.ts';
import { type Connector, startConnector } from '../../connector/mqtt/server.ts';
import { createCommandHandOver } from '../commands/hand-over.ts';
import type { ConnectorSettings } from '../config/settings.ts';
import type { AccountThrottle } from '../contract/uplink.ts';
import type { Sql } from '../db/sql.ts';
import { intermittentAmong } from '../devices/schema.ts';
import { DomainError } from '../errors.ts';
import { trustProxies } from '../http/answer.ts';
import { probeRoutes } from '../http/health.ts';
import { type HttpOptions, type HttpServer, startHttp } from '../http/server.ts';
import type { Ingest } from '../ingest/ingest.ts';
import { startTicks } from '../ingest/ticks.ts';
import { startEvery } from '../lib/wait.ts';
import {
  type ConnectorUptime,
  startConnectorUptime,
} from '../connector-uptime/connector-uptime.ts';
import {
  observeBridges,
  observeConnector,
  observeHttpQueue,
  observeHttpUplink,
  observeTicks,
} from '../metrics/observe.ts';
import { startHeartbeat } from '../notifications/heartbeat.ts';
import type { Notifications } from '../notifications/notifications.ts';
import { createDownlinks } from '../profiles/downlinks.ts';
import { type RunningBridge, leaseNameOf, startBridgeConnector } from './bridges.ts';
import {
  connectorLimits,
  connectorPorts,
  type ConnectorContext,
  type DeviceLogins,
  startDeviceLogins,
  startPresenceOf,
  deviceLimitsOf,
  withCommands,
} from './device-ports.ts';
import { startIngestion } from './ingest.ts';
import type { Shared } from './shared.ts';
import type { WallMs } from '../lib/clock-readings.ts';

export type DeviceServices = {
  /** The MQTT connector of this process; null if it runs none. */
  connector: Connector | null;
  /** Handles requests of devices on this process's HTTP server; null if no HTTP connector runs here. */
  uplink: HttpConnector | null;
  /** Whether messages of accounts other than this one wait to be stored. */
  othersWait: Ingest['othersWait'];
  /** Whether every bridge of this process is connected, or stands by and could take over. */
  isBridgeReady(): boolean;
};

/** Starts the half of the service that devices talk to: connectors, ingest and notifications. */
export async function startDeviceServices(shared: Shared): Promise<DeviceServices> {
  const downlinks = withCommands(createDownlinks(shared), createCommandHandOver(shared));
  const runUuid = randomUUID();
  const listening = await startUptimeOf(shared);
  const { ingest, throttle, outbox } = await startIngestion(shared, downlinks, runUuid, listening);
  const observer = observeConnector(shared.metrics.registry);
  const deviceLimits = deviceLimitsOf(shared, ingest, throttle);
  const observeBridge = observeBridges(shared.metrics.registry);
  const bridges: RunningBridge[] = [];
  let connector: Connector | null = null;
  let uplink: HttpConnector | null = null;
  const logins = startDeviceLogins(shared);
  for (const settings of pickConnectors(shared)) {
    const presence = await startPresenceOf(shared, settings.id);
    const context: ConnectorContext = {
      shared,
      downlinks,
      ingest,
      throttle,
      presence,
      observer,
      deviceLimits,
    };
    if (settings.kind === 'mqtt') {
      connector = await startMqtt(context, settings.id, logins);
      await listening.add(settings.id, ingest.isStoring);
    } else if (settings.kind === 'http') {
      uplink = startUplink(context, settings.id, logins);
      await listening.add(settings.id, ingest.isStoring);
    } else {
      const bridge = await startBridgeConnector({ ...context, settings, runUuid, observeBridge });
      bridges.push(bridge);
      await listening.add(settings.id, () => bridge.isSubscribed() && ingest.isStoring());
    }
  }
  startTicksOf(shared, { ingest, throttle, connector, listening });
  startHeartbeatOf(shared, { outbox, throttle, listening });
  const { othersWait } = ingest;
  const isBridgeReady = () => bridges.every(({ isReady }) => isReady());
  return { connector, uplink, othersWait, isBridgeReady };
}

/** Without `--id`: every bridge, and the first connector of kind mqtt and of kind http. */
function pickConnectors({ config: { role, connectors } }: Shared): ConnectorSettings[] {
  if (role.name === 'connector') return connectors.filter(({ id }) => id === role.id);
  const own = ['mqtt', 'http'].map((kind) => connectors.find((one) => one.kind === kind));
  return connectors.filter((one) => own.includes(one) || one.kind === 'bridge');
}

/** Records since when, and with which gaps, the configured connectors have listened to their devices. */
async function startUptimeOf(shared: Shared): Promise<ConnectorUptime> {
  const { config, db, clock, disposables } = shared;
  const log = shared.log.child({ component: 'devices' });
  const leaders = leadersAmong(config.connectors);
  const listening = await startConnectorUptime({
    db,
    clock,
    leaderOf: (connectorId) => leaders.get(connectorId) ?? null,
    onError: (err) =>
      log.warn(
        { event: 'listening.unwritten', err },
        'The times at which connectors listened could not be stored; the service will try again.',
      ),
  });
  disposables.add('listening', () => listening.close());
  return listening;
}

/** For each connector, the first one of the configuration with the same devices: bridges share those of a broker. */
export function leadersAmong(connectors: readonly ConnectorSettings[]): Map<number, number> {
  const firsts = new Map<string, number>();
  return new Map(
    connectors.map((connector) => {
      const name = sharedName(connector);
      const first = firsts.get(name) ?? connector.id;
      firsts.set(name, first);
      return [connector.id, first];
    }),
  );
}

function sharedName(connector: ConnectorSettings): string {
  if (connector.kind !== 'bridge') return `${connector.kind} ${connector.id}`;
  const { url, shareName } = connector.broker;
  return leaseNameOf(connector) ?? `${url} ${shareName}`;
}

/** Starts the MQTT broker for devices. */
async function startMqtt(
  context: ConnectorContext,
  connectorId: number,
  logins: DeviceLogins,
): Promise<Connector> {
  const { shared, observer } = context;
  const { config, log } = shared;
  const connector = await startConnector(
    {
      tcp: config.mqttListen,
      tls: config.mqttsListen,
      limits: connectorLimits(config),
      trustedProxies: config.mqtt.trustedProxies,
      places: shared.places,
      log: log.child({ component: 'mqtt', connectorId }),
      observe: observer,
      now: shared.monotonicClock,
      deviceLimits: context.deviceLimits,
    },
    connectorPorts(context, connectorId, logins),
  );
  shared.memory.addIntake(connector.pause);
  watchExpiry(shared, connector.certificateExpiresTs);
  shared.ingress.add('MQTT', (drainMs) => connector.close({ drainMs }));
  return connector;
}

const dayMs = 86_400_000;
/** Enough time to notice and renew. Certificates that renew themselves do so 30 days before they expire. */
const soonMs = 21 * dayMs;

/** Exports the certificate's expiry as a metric, and logs a warning once a day when it is near or has passed. */
function watchExpiry(
  { clock, log, metrics, disposables }: Shared,
  expiresTs: Connector['certificateExpiresTs'],
): void {
  new Gauge({
    name: 'mqtt_certificate_expires_timestamp_seconds',
    help: 'When the certificate of MQTT over TLS expires, in seconds since 1970.',
    labelNames: ['protocol'],
    registers: [metrics.registry],
    collect() {
      const ts = expiresTs();
      if (ts !== null) this.set({ protocol: 'mqtts' }, ts / 1_000);
    },
  });
  if (expiresTs() === null) return;
  const mqttLog = log.child({ component: 'mqtt' });
  const check = async () => {
    const leftMs = (expiresTs() ?? Infinity) - clock();
    if (leftMs > soonMs) return;
    const days = Math.floor(Math.abs(leftMs) / dayMs);
    const when = leftMs < 0 ? `expired ${days} days ago` : `expires in ${days} days`;
    mqttLog.warn(
      { event: 'certificate.ends' },
      `The certificate of MQTT over TLS ${when}; devices refuse an expired certificate.`,
    );
  };
  disposables.add('certificate', startEvery(dayMs, check));
}

/** Starts the HTTP connector for devices. The API, or `startConnectorHttp`, listens for it. */
function startUplink(
  context: ConnectorContext,
  connectorId: number,
  logins: DeviceLogins,
): HttpConnector {
  const { shared } = context;
  const { config, log, metrics, readiness } = shared;
  const uplink: HttpConnector = startHttpConnector(
    {
      limits: connectorLimits(config),
      log: log.child({ component: 'http-uplink', connectorId }),
      observe: observeHttpUplink(metrics.registry, () => uplink.snapshot()),
      now: shared.monotonicClock,
      deviceLimits: context.deviceLimits,
      findAddress: addressOf(config.http.trustedProxies),
      unreadBodies: shared.unreadBodies,
      places: shared.places,
      isLeaving: readiness.isStopping,
    },
    connectorPorts(context, connectorId, logins),
  );
  shared.memory.addIntake(uplink.pause);
  shared.ingress.add('HTTP uplink', (drainMs) => uplink.close({ drainMs }));
  return uplink;
}

function addressOf(trustedProxies: string[]): (request: IncomingMessage) => string {
  const findAddress = trustProxies(trustedProxies);
  return ({ socket, headers }) =>
    findAddress(socket.remoteAddress ?? '', String(headers['x-forwarded-for'] ?? ''));
}

/**
 * The HTTP server of a connector process: messages of devices over HTTP or MQTT over WebSocket, and probes. It has
 * nothing of the API.
 */
export async function startConnectorHttp(
  shared: Shared,
  listen: { host: string; port: number },
  takes: Pick<HttpOptions, 'inFront' | 'upgrades'>,
): Promise<HttpServer> {
  const { config, log, metrics, clock, readiness } = shared;
  const http = await startHttp({
    ...listen,
    ...config.http,
    places: shared.places,
    unreadBodies: shared.unreadBodies,
    routes: probeRoutes(readiness),
    authenticate: async () => {
      throw new DomainError('unauthenticated', 'This connector has no login.');
    },
    ...takes,
    log: log.child({ component: 'http' }),
    clock,
    observe: metrics.observeHttp,
    requestBytes: shared.memory.requestBytes,
    isShort: shared.memory.isShort,
    isLeaving: readiness.isStopping,
  });
  observeHttpQueue(metrics.registry, http.countWaiting);
  shared.ingress.add('HTTP', (withinMs) => http.close(withinMs));
  return http;
}

/** Requests of devices bypass Koa. */
export function inFrontOf({ handle }: HttpConnector): Pick<HttpOptions, 'inFront'> {
  return { inFront: { prefix: devicesPrefix, handle } };
}

/** MQTT over WebSocket. Behind a trusted proxy the device's address is the one that the proxy names. */
export function upgradesOf(
  connector: Connector,
  trustedProxies: string[],
): Pick<HttpOptions, 'upgrades'> {
  const findAddress = addressOf(trustedProxies);
  return {
    upgrades: {
      '/mqtt': (request, socket, head) =>
        connector.acceptWebSocket(request, socket, head, findAddress(request)),
    },
  };
}

type TicksContext = {
  ingest: Pick<Ingest, 'tick'>;
  throttle: AccountThrottle;
  connector: Pick<Connector, 'isConnected'> | null;
  listening: Pick<ConnectorUptime, 'isHere' | 'isKnownAt'>;
};

/**
 * Evaluates conditions on time (a duration, a silence) when they are due. This process evaluates its own devices at
 * once, and devices of other processes a little later.
 */
function startTicksOf(
  shared: Shared,
  { ingest, throttle, connector, listening }: TicksContext,
): void {
  const { config, db, clock, monotonicClock, log, metrics, disposables } = shared;
  const intermittent = new Set(intermittentAmong(config.connectors));
  const ticks = startTicks({
    db,
    clock,
    monotonicClock,
    tick: ingest.tick,
    isHere: ({ uuid, connectorId, isConnected }) =>
      connector?.isConnected(uuid) === true ||
      // If several processes run that connector, each may evaluate the device; the second one finds nothing due.
      ((intermittent.has(connectorId) || !isConnected) && listening.isHere(connectorId)),
    isHeardOf: ({ connectorId, dueTs }) => listening.isKnownAt(connectorId, dueTs),
    isHeld: (accountId) => throttle.waitMs(accountId) > 0,
    log: log.child({ component: 'ingest' }),
    observe: observeTicks(metrics.registry),
  });
  disposables.add('ticks', () => ticks.close());
}

type Watched = {
  outbox: Pick<Notifications, 'lastLookTs'>;
  throttle: Pick<AccountThrottle, 'waitMs'>;
  listening: Pick<ConnectorUptime, 'of'>;
};

/** Work that is late by more than this is overdue. */
const lateMs = 60_000;

/** Sends heartbeats to an external monitor, if one is configured, while devices are heard and due work is done. */
function startHeartbeatOf(shared: Shared, { outbox, throttle, listening }: Watched): void {
  const { config, db, clock, log, disposables } = shared;
  const { heartbeat } = config.notifications;
  if (heartbeat === null) return;
  const beating = startHeartbeat({
    ...heartbeat,
    log: log.child({ component: 'notifications' }),
    checks: {
      connectors: () =>
        config.connectors.every(({ id }) => listening.of(id)?.gaps.at(-1)?.toTs !== null),
      ticks: async () =>
        (await listLateAccounts(db)).every((accountId) => throttle.waitMs(accountId) > 0),
      alarms: () => areAlarmsOnTime(db, clock()),
      deliveries: () => clock() - (outbox.lastLookTs() ?? 0) < lateMs,
    },
  });
  disposables.add('heartbeat', () => beating.close());
}

/** Accounts with devices whose ticks are overdue. Accounts over a quota must wait. */
async function listLateAccounts(db: Sql): Promise<number[]> {
  const { rows } = await db.query<{ accountId: number }>(
    `select distinct account_id as "accountId"
       from (select account_id from device_due
              where coalesce(retry_at, due_at) < service_now() - interval '${lateMs} ms'
              order by coalesce(retry_at, due_at) limit 1000) as late`,
  );
  return rows.map(({ accountId }) => accountId);
}

async function areAlarmsOnTime(db: Sql, nowTs: WallMs): Promise<boolean> {
  const { rows } = await db.query(
    `select from alarm
      where closed_at is null and next_at < ms_to_timestamp($1) limit 1`,
    [nowTs - lateMs],
  );
  return rows.length === 0;
}
