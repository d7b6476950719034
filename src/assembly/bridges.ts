import { readFile } from 'node:fs/promises';
import { hostname } from 'node:os';
import { startBridge } from '../../connector/bridge/bridge.ts';
import { filterOf } from '../../connector/bridge/client.ts';
import { startStandBy } from '../../connector/bridge/standby.ts';
import {
  type BridgeStatus,
  type BridgeView,
  type BrokerAddress,
  createBridgeStatus,
  type LeaseTerm,
  type StartLease,
  withoutCredentials,
} from '../../connector/bridge/status.ts';
import {
  listLiveBridges,
  type LiveBridge,
  removeBridgeStatus,
  saveBridgeStatus,
} from '../broker-hooks/bridge-status.ts';
import type { ConnectorSettings } from '../config/settings.ts';
import { startLease } from '../db/lease.ts';
import type { Sql } from '../db/sql.ts';
import { atConnector } from '../devices/authenticate.ts';
import { createDeviceIdentifier } from '../devices/tokens.ts';
import type { ObservedBridge } from '../metrics/observe.ts';
import { StartError } from '../start-error.ts';
import { type ConnectorContext, devicePorts } from './device-ports.ts';

export type RunningBridge = {
  /** Whether it is connected, or stands by and could take over. */
  isReady(): boolean;
  /** Whether the broker has accepted its subscription. */
  isSubscribed(): boolean;
};

type BridgeDeps = ConnectorContext & {
  settings: BridgeSettings;
  /** Identifies one run of this process. */
  runUuid: string;
  observeBridge: (bridge: ObservedBridge) => void;
};

/** Starts a connector of kind `bridge`, whose devices are those of an external broker. */
export async function startBridgeConnector(context: BridgeDeps): Promise<RunningBridge> {
  const { settings, shared, observer } = context;
  const { config, db, bus, ingress } = shared;
  const log = bridgeLog(context);
  const identifier = createDeviceIdentifier({ db, bus, isDisabled: shared.disabled.has });
  shared.disposables.add('known devices', () => identifier.close());
  const broker = await readBroker(settings);
  const { status, report } = startStatus(context, broker);
  const { maxPacketBytes } = config.mqtt;
  const { rejectionsPerMessage } = config.quotas;
  const start = (term?: LeaseTerm) =>
    startBridge(
      {
        broker,
        maxPacketBytes,
        rejectionsPerMessage,
        log,
        now: shared.monotonicClock,
        status,
        observe: observer,
        addIntake: shared.memory.addIntake,
      },
      { ...devicePorts(context), identify: atConnector(settings.id, identifier.identify) },
      term,
    );
  const isSubscribed = () => status.read().isConnected;
  const leaseName = leaseNameOf(settings);
  if (leaseName === null) {
    const bridge = start();
    ingress.add(`bridge ${settings.name}`, (drainMs) => bridge.close({ drainMs }));
    await bridge.ready;
    await report.written();
    return { isReady: isSubscribed, isSubscribed };
  }
  const startLease = leaseFor(leaseName, context);
  const standBy = await startStandBy({ broker, startLease, startBridge: start, status, log });
  ingress.add(`bridge ${settings.name}`, (drainMs) => standBy.close({ drainMs }));
  await report.written();
  return { isReady: standBy.isReady, isSubscribed };
}

const bridgeLog = ({ settings, shared }: Pick<BridgeDeps, 'settings' | 'shared'>) =>
  shared.log.child({ component: 'bridge', connectorId: settings.id });

/** The bridge's state. The bridge writes it; the metrics and the report for `/v2/status` read it. */
function startStatus(context: BridgeDeps, broker: BrokerAddress) {
  const { settings, runUuid, shared, observeBridge } = context;
  const { db, clock, disposables } = shared;
  const log = bridgeLog(context);
  const { id: connectorId, name: connectorName } = settings;
  const status: BridgeStatus = createBridgeStatus({
    name: { ...broker, connectorName, filter: filterOf(broker) },
    hasLease: broker.shareName === null,
    log,
    clock,
    onChange: () => report.changed(),
  });
  const report = startBridgeReport({
    db,
    connectorId,
    connectorName,
    runUuid,
    read: status.read,
    onError: (err) =>
      log.warn(
        { event: 'bridge.report-failed', err, connector: connectorName },
        'The state of the bridge could not be written for other processes; the service will try again.',
      ),
  });
  observeBridge({ connector: connectorName, read: status.read });
  disposables.add(`report of bridge ${connectorName}`, async () => {
    status.end();
    await report.close();
  });
  return { status, report };
}

/**
 * The lease belongs to one process at a time, because the broker's session belongs to the service, not to one bridge.
 */
function leaseFor(name: string, context: Pick<BridgeDeps, 'settings' | 'shared'>): StartLease {
  const {
    id,
    broker: { url },
  } = context.settings;
  const { storage } = context.shared;
  const log = bridgeLog(context);
  const broker = withoutCredentials(url);
  return (holder) =>
    startLease({
      ...holder,
      connectionString: storage.connectionString,
      name,
      holder: `sensorium connector ${id}, process ${process.pid}`,
      onError: (err) =>
        log.warn(
          { event: 'bridge.lease-unknown', err, broker },
          "The broker's lease could not be read from the database.",
        ),
    });
}

async function readBroker(settings: BridgeSettings): Promise<BrokerAddress> {
  const { url, passwordFile, caFile, shareName } = settings.broker;
  const read = (file: string) =>
    readFile(file).catch((error: Error) => {
      throw new StartError(`connectors: ${file} cannot be read (${error.message}).`);
    });
  return {
    url,
    shareName,
    ...namesAtBroker(settings),
    password: passwordFile === undefined ? undefined : String(await read(passwordFile)).trim(),
    ca: caFile === undefined ? undefined : await read(caFile),
  };
}

type BridgeSettings = Extract<ConnectorSettings, { kind: 'bridge' }>;

const standByName = 'sensorium-bridge';

/** A bridge's names at the broker. */
function namesAtBroker({ id, broker: { username, shareName } }: BridgeSettings): {
  username: string;
  clientId: string;
} {
  // Brokers are often configured to use the username as the session's name, so bridges that share need different ones.
  const user = username ?? (shareName === null ? standByName : `${standByName}-${id}`);
  // Names the connector or the service, not the process, so that the next process resumes its session.
  return { username: user, clientId: shareName === null ? user : `${shareName}-${id}` };
}

/** The lease of bridges that connect one at a time; null if they share. */
export function leaseNameOf(settings: BridgeSettings): string | null {
  const { url, shareName } = settings.broker;
  return shareName === null ? `${url} ${namesAtBroker(settings).clientId}` : null;
}

/** The bridges among the connectors. */
function bridgesAmong(connectors: ConnectorSettings[]): BridgeSettings[] {
  return connectors.filter((connector) => connector.kind === 'bridge');
}

type BridgeReportOptions = {
  db: Sql;
  connectorId: number;
  connectorName: string;
  /** Identifies one run of this process. */
  runUuid: string;
  read: () => BridgeView;
  /** Called once until it works again. */
  onError: (error: unknown) => void;
  /** Well below the time after which a row that is not refreshed counts as gone. */
  refreshMs?: number;
};

type BridgeReport = {
  /** Something changed that other processes should know at once. */
  changed(): void;
  /** Resolves when the current state has been written, or could not be. */
  written(): Promise<void>;
  close(): Promise<void>;
};

/** Reports the state of a bridge of this process to the others, through the database. */
function startBridgeReport(options: BridgeReportOptions): BridgeReport {
  const { db, connectorId, connectorName, runUuid, read, onError, refreshMs = 5_000 } = options;
  let writing = Promise.resolve();
  let isDue = false;
  let isFailing = false;

  async function write(): Promise<void> {
    isDue = false;
    const { refused, ...view } = read();
    const count = [...refused.values()].reduce((sum, each) => sum + each, 0);
    const where = `${hostname()}:${process.pid}`;
    const row = { ...view, connectorId, connectorName, runUuid, process: where, refused: count };
    try {
      await saveBridgeStatus(db, row);
      isFailing = false;
    } catch (error) {
      if (!isFailing) onError(error);
      isFailing = true;
    }
  }

  /** One write at a time, and one more if something changed meanwhile. */
  function changed(): void {
    if (isDue) return;
    isDue = true;
    writing = writing.then(write);
  }

  const timer = setInterval(changed, refreshMs);
  timer.unref();
  changed();
  return {
    changed,
    written: () => writing,
    async close() {
      clearInterval(timer);
      await writing;
      await removeBridgeStatus(db, { connectorId, runUuid }).catch(onError);
    },
  };
}

/** A bridge of the configuration, wherever it runs, as anybody may see it. */
type SeenBridge = {
  connectorName: string;
  /** `absent`: no process runs it. */
  state: 'connected' | 'disconnected' | 'absent';
  /** Since when, ms; null if no process runs it. */
  sinceTs: number | null;
  /** Why it is not connected, as a code; null if it is, or if no process runs it. */
  reason: string | null;
  /** For bridges that connect one at a time: whether a process holds the lease. */
  lease: 'held' | 'free' | null;
  /** The machine and number of the process that holds it. */
  holder: string | null;
  /** The last messages from and to the broker, of all processes that run the bridge now, ms. */
  lastInTs: number | null;
  lastOutTs: number | null;
  /** Messages that were not accepted, of the same processes since their start. */
  refused: number;
};

/** The state of all bridges of the configuration, whichever processes run them. */
export async function listSeenBridges(
  db: Sql,
  connectors: ConnectorSettings[],
): Promise<SeenBridge[]> {
  const bridges = bridgesAmong(connectors);
  if (bridges.length === 0) return [];
  const live = await listLiveBridges(db);
  return bridges.map((bridge) => see(bridge, bridges, live));
}

/** Connectors with one lease count together: one of them connects for all. */
function see(bridge: BridgeSettings, bridges: BridgeSettings[], live: LiveBridge[]): SeenBridge {
  const lease = leaseNameOf(bridge);
  const isPartner = ({ connectorId }: LiveBridge) =>
    connectorId === bridge.id ||
    (lease !== null &&
      bridges.some((other) => other.id === connectorId && leaseNameOf(other) === lease));
  const rows = live.filter(isPartner);
  const decisive =
    rows.find(({ isConnected }) => isConnected) ??
    rows.find(({ isLeaseHeld }) => isLeaseHeld) ??
    rows[0];
  const holder = rows.find(({ isLeaseHeld }) => isLeaseHeld);
  return {
    connectorName: bridge.name,
    state: decisive === undefined ? 'absent' : decisive.isConnected ? 'connected' : 'disconnected',
    sinceTs: decisive?.sinceTs ?? null,
    reason: decisive?.reason ?? null,
    lease: lease === null ? null : holder ? 'held' : 'free',
    holder: holder?.process ?? null,
    lastInTs: newestOf(rows.map(({ lastInTs }) => lastInTs)),
    lastOutTs: newestOf(rows.map(({ lastOutTs }) => lastOutTs)),
    refused: rows.reduce((sum, { refused }) => sum + refused, 0),
  };
}

function newestOf(times: (number | null)[]): number | null {
  return times.reduce((newest, ts) => (ts === null ? newest : Math.max(newest ?? ts, ts)), null);
}
