import { readFile } from 'node:fs/promises';
import { withoutCredentials } from '../../connector/bridge/advice.ts';
import { startBridge } from '../../connector/bridge/bridge.ts';
import { filterOf } from '../../connector/bridge/client.ts';
import type { BrokerAddress, LeaseTurn, StartLease } from '../../connector/bridge/ports.ts';
import { startStandBy } from '../../connector/bridge/standby.ts';
import { type BridgeStatus, createBridgeStatus } from '../../connector/bridge/status.ts';
import { startLease } from '../db/lease.ts';
import { createDeviceIdentifier } from '../devices/identify.ts';
import type { ObservedBridge } from '../metrics/observe-bridge.ts';
import { StartError } from '../start-error.ts';
import { type BridgeSettings, leaseNameOf, namesAtBroker } from './bridge-names.ts';
import { startBridgeReport } from './bridge-report.ts';
import { atConnector, type ConnectorSide, devicePorts } from './device-ports.ts';

export type BridgeSide = {
  /** It is connected, or stands by and could take over. */
  isReady(): boolean;
  /** The broker has taken its subscription. */
  isSubscribed(): boolean;
};

export type BridgeSideDeps = ConnectorSide & {
  settings: BridgeSettings;
  /** One run of this process. */
  runUuid: string;
  observeBridge: (bridge: ObservedBridge) => void;
};

/** A connector of kind `bridge`: its devices are those of an external broker. */
export async function startBridgeSide(side: BridgeSideDeps): Promise<BridgeSide> {
  const { settings, shared, observer } = side;
  const { config, db, bus, edges } = shared;
  const log = bridgeLog(side);
  const identifier = createDeviceIdentifier({ db, bus, isDisabled: shared.disabled.has });
  shared.releases.add('known devices', () => identifier.close());
  const broker = await readBroker(settings);
  const { status, report } = startStatus(side, broker);
  const { maxPacketBytes } = config.mqtt;
  const { rejectionsPerMessage } = config.quotas;
  const start = (turn?: LeaseTurn) =>
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
      { ...devicePorts(side), identify: atConnector(settings.id, identifier.identify) },
      turn,
    );
  const isSubscribed = () => status.read().isConnected;
  const leaseName = leaseNameOf(settings);
  if (leaseName === null) {
    const bridge = start();
    edges.add(`bridge ${settings.name}`, (drainMs) => bridge.close({ drainMs }));
    await bridge.ready;
    await report.written();
    return { isReady: isSubscribed, isSubscribed };
  }
  const startLease = leaseFor(leaseName, side);
  const standBy = await startStandBy({ broker, startLease, startBridge: start, status, log });
  edges.add(`bridge ${settings.name}`, (drainMs) => standBy.close({ drainMs }));
  await report.written();
  return { isReady: standBy.isReady, isSubscribed };
}

const bridgeLog = ({ settings, shared }: Pick<BridgeSideDeps, 'settings' | 'shared'>) =>
  shared.log.child({ component: 'bridge', connectorId: settings.id });

/** Where the bridge writes its state; the metrics and, for `/v2/status`, the report read it there. */
function startStatus(side: BridgeSideDeps, broker: BrokerAddress) {
  const { settings, runUuid, shared, observeBridge } = side;
  const { db, clock, releases } = shared;
  const log = bridgeLog(side);
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
        'The state of the bridge could not be written for other processes; it is tried again.',
      ),
  });
  observeBridge({ connector: connectorName, read: status.read });
  releases.add(`report of bridge ${connectorName}`, async () => {
    status.end();
    await report.close();
  });
  return { status, report };
}

/** Held by one process at a time: the broker's session belongs to the service, not to a bridge. */
function leaseFor(name: string, side: Pick<BridgeSideDeps, 'settings' | 'shared'>): StartLease {
  const {
    id,
    broker: { url },
  } = side.settings;
  const { storage } = side.shared;
  const log = bridgeLog(side);
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
          'The lease of the broker could not be read from the database.',
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
