import { randomUUID } from 'node:crypto';
import type { HttpConnector } from '../../connector/http/server.ts';
import { startConnector } from '../../connector/mqtt/server.ts';
import type { Connector } from '../../connector/mqtt/server.ts';
import type { AccountThrottle } from '../contract/uplink.ts';
import { listWaitingSenses } from '../alarms/load.ts';
import { startPresence } from '../devices/presence.ts';
import type { Presence } from '../devices/presence.ts';
import { replaceConfigurations } from '../devices/queries.ts';
import { keepRejections } from '../devices/rejections.ts';
import { recordEvents } from '../events/record.ts';
import { startIngest } from '../ingest/ingest.ts';
import type { Ingest } from '../ingest/ingest.ts';
import { startListeners } from '../live/listeners.ts';
import type { ListeningWatch } from '../listening/listening.ts';
import { createKnownSeries } from '../measurements/known-series.ts';
import { findNewest } from '../measurements/newest.ts';
import { addMeasurements, findStored, storeMeasurements } from '../measurements/store.ts';
import { startNotifications, type Notifications } from '../notifications/notifications.ts';
import { createDownlinks } from '../profiles/downlinks.ts';
import type { Downlinks } from '../profiles/downlinks.ts';
import { keepDisplays } from '../profiles/kept-displays.ts';
import { saveProfileAnswers } from '../profiles/save-answers.ts';
import type { ConnectorSettings } from '../config/settings.ts';
import { startActivity } from '../quotas/activity.ts';
import { alarmPortOf, startAlarms } from './alarms.ts';
import { startBridgeSide } from './bridge-side.ts';
import type { BridgeSide } from './bridge-side.ts';
import { contactOptions } from './contacts.ts';
import {
  connectorLimits,
  connectorPorts,
  startDeviceLogins,
  startRatesOf,
} from './device-ports.ts';
import type { ConnectorSide, DeviceLogins } from './device-ports.ts';
import { createEventCounters, eventsLeftOf, startHoldsOf } from './event-counters.ts';
import { startHeartbeatOf } from './heartbeat.ts';
import { startTicksOf } from './ticks.ts';
import { startUplink } from './uplink.ts';
import { observeConnector, observeIngest, observeOutbox } from '../metrics/observe.ts';
import { observeBridges } from '../metrics/observe-bridge.ts';
import { startListeningOf } from './listening.ts';
import type { Shared } from './shared.ts';
import { isSmsForAll } from './install-warnings.ts';

const dayMs = 86_400_000;
/** Two transactions beside each other, one of ticks, and what reads devices for them. */
const ingestConnections = 5;
/** Longer than for requests: only messages wait for it, and these cannot go elsewhere. */
const ingestConnectMs = 5_000;

export type DeviceSide = {
  /** The one that listens in this process; null where only bridges run. */
  connector: Connector | null;
  /** Takes requests of devices, on the HTTP of this process; null where no such connector runs here. */
  uplink: HttpConnector | null;
  /** Whether messages of accounts other than this one wait to be stored. */
  othersWait: Ingest['othersWait'];
  /** Whether every bridge of this process is connected, or stands by and could take over. */
  isBridgeReady(): boolean;
};

/** The half that devices talk to: connectors, ingest and notifications. */
export async function startDeviceSide(shared: Shared): Promise<DeviceSide> {
  const downlinks = createDownlinks(shared);
  const runUuid = randomUUID();
  const listening = await startListeningOf(shared);
  const { ingest, holds, outbox } = await startIngestion(shared, downlinks, runUuid, listening);
  const observer = observeConnector(shared.metrics.registry);
  const rateStore = startRatesOf(shared, ingest);
  const observeBridge = observeBridges(shared.metrics.registry);
  const bridges: BridgeSide[] = [];
  let connector: Connector | null = null;
  let uplink: HttpConnector | null = null;
  const logins = startDeviceLogins(shared);
  for (const settings of pickConnectors(shared)) {
    const presence = await startPresenceOf(shared, settings.id);
    const side: ConnectorSide = { shared, downlinks, ingest, holds, presence, observer, rateStore };
    if (settings.kind === 'mqtt') {
      connector = await startMqtt(side, settings.id, logins);
      await listening.add(settings.id, ingest.isStoring);
    } else if (settings.kind === 'http') {
      uplink = startUplink(side, settings.id, logins);
      await listening.add(settings.id, ingest.isStoring);
    } else {
      const bridge = await startBridgeSide({ ...side, settings, runUuid, observeBridge });
      bridges.push(bridge);
      await listening.add(settings.id, () => bridge.isSubscribed() && ingest.isStoring());
    }
  }
  startTicksOf(shared, { ingest, holds, connector, listening });
  startHeartbeatOf(shared, { outbox, holds, listening });
  const { othersWait } = ingest;
  const isBridgeReady = () => bridges.every(({ isReady }) => isReady());
  return { connector, uplink, othersWait, isBridgeReady };
}

async function startPresenceOf(shared: Shared, connectorId: number): Promise<Presence> {
  const { db, log, clock, releases } = shared;
  const devicesLog = log.child({ component: 'devices', connectorId });
  const onError = (err: unknown) =>
    devicesLog.warn(
      { event: 'presence.unwritten', err },
      'Which devices are connected could not be written; it is tried again.',
    );
  const presence = await startPresence({ db, connectorId, clock, onError });
  releases.add('presence', () => presence.close());
  return presence;
}

async function startMqtt(
  side: ConnectorSide,
  connectorId: number,
  logins: DeviceLogins,
): Promise<Connector> {
  const { shared, observer } = side;
  const { config, log } = shared;
  const connector = await startConnector(
    {
      tcp: config.mqttListen,
      tls: config.mqttsListen,
      limits: connectorLimits(config),
      trustedProxies: config.mqtt.trustedProxies,
      log: log.child({ component: 'mqtt', connectorId }),
      observe: observer,
      now: shared.monotonicClock,
      rateStore: side.rateStore,
    },
    connectorPorts(side, connectorId, logins),
  );
  shared.memory.addIntake(connector.pause);
  shared.edges.add('MQTT', (drainMs) => connector.close({ drainMs }));
  return connector;
}

async function startIngestion(
  shared: Shared,
  downlinks: Downlinks,
  runUuid: string,
  listening: Pick<ListeningWatch, 'of'>,
): Promise<{ ingest: Ingest; holds: AccountThrottle; outbox: Notifications }> {
  const { config, log, releases, storage, db, bus, clock, limitsOf, memory } = shared;
  const outbox = await startNotifications({
    db,
    connectionString: storage.connectionString,
    config: config.notifications,
    quotasOf: limitsOf,
    isSmsForAll: isSmsForAll(config),
    contacts: contactOptions(shared),
    alarms: alarmPortOf(shared),
    log: log.child({ component: 'notifications' }),
    clock,
    onOutcome: observeOutbox(shared.metrics.registry),
  });
  releases.add('notifications', () => outbox.close());

  const knownSeries = createKnownSeries();
  const ingestDb = storage.open(ingestConnections, {
    pipeline: true,
    keepPlans: true,
    connectTimeoutMs: ingestConnectMs,
  });
  // What answers now may be another server, which took over without all that was known of the one before.
  ingestDb.pool.on('connect', knownSeries.clear);
  const quotasLog = log.child({ component: 'quotas' });
  const activity = await startActivity({
    db,
    limitsOf,
    clock,
    runUuid,
    onError: (err) =>
      quotasLog.warn(
        { event: 'quotas.unwritten', err },
        'What accounts use could not be written; it is tried again.',
      ),
  });
  releases.add('use of quotas', () => activity.close());
  const { rate, eventQuota } = createEventCounters(activity, shared);
  const listeners = startListeners({ bus, monotonicClock: shared.monotonicClock });
  releases.add('listeners', () => listeners.close());
  const decideAlarms = startAlarms(shared, { outbox, eventsLeft: eventsLeftOf(eventQuota) });
  const { maxAheadMs, ringMaxAgeMs } = config.ingest;
  const { rejectionsPerMessage, rejectionBytesPerDevice } = config.quotas;
  const ingest: Ingest = startIngest(
    {
      limits: {
        maxAheadMs,
        ringMaxAgeMs,
        rejectionsPerMessage,
        rejectionBytesPerDevice,
        measurementMaxAgeMs: config.retention.measurementsDays * dayMs,
        eventMaxAgeMs: config.retention.eventsDays * dayMs,
        sizesOf: limitsOf,
        listeningOf: ({ connectorId }) =>
          connectorId === undefined ? undefined : listening.of(connectorId),
      },
      maxInFlight: 2,
      anotherAtMessages: 1_000,
      anotherAfterMs: 50,
      maxBatchItems: 5_000,
      maxRememberedDevices: 100_000,
      maxRememberedBytes: memory.deviceBytes,
    },
    {
      db: ingestDb,
      bus,
      log: log.child({ component: 'ingest' }),
      writers: {
        addMeasurements: (tx, rows) => addMeasurements(tx, rows, knownSeries),
        storeMeasurements: (tx, rows, onAdded) => storeMeasurements(tx, rows, knownSeries, onAdded),
        recordEvents,
        keepRejections: (tx, rows) =>
          keepRejections(tx, rows, { maxBytes: rejectionBytesPerDevice }),
        settleProfiles: saveProfileAnswers,
        keepDisplays,
        replaceConfigurations,
        decideAlarms,
      },
      findNewest,
      findStored,
      listWaitingSenses,
      eventQuota,
      clock,
      nowMs: shared.monotonicClock,
      newUuid: randomUUID,
      random: Math.random,
      handOver: downlinks.handOver,
      listeners,
      observe: observeIngest(shared.metrics.registry, () => ingest.depth()),
    },
  );
  memory.addCache(ingest.forget);
  releases.add('ingest', (drainMs) => ingest.close(drainMs));
  return { ingest, outbox, holds: await startHoldsOf(shared, rate, ingest) };
}

/** Without `--id`: every bridge, and the first connector of kind mqtt and of kind http. */
function pickConnectors({ config: { role, connectors } }: Shared): ConnectorSettings[] {
  if (role.name === 'connector') return connectors.filter(({ id }) => id === role.id);
  const own = ['mqtt', 'http'].map((kind) => connectors.find((one) => one.kind === kind));
  return connectors.filter((one) => own.includes(one) || one.kind === 'bridge');
}
