import { readFile } from 'node:fs/promises';
import { startBridge } from '../../connector/bridge/bridge.ts';
import type { BrokerAddress, StartLease } from '../../connector/bridge/ports.ts';
import { startStandBy } from '../../connector/bridge/stand-by.ts';
import { startLease } from '../db/lease.ts';
import { createDeviceIdentifier } from '../devices/identify.ts';
import type { ConnectorSettings } from '../settings.ts';
import { StartError } from '../start-error.ts';
import { devicePorts } from './device-ports.ts';
import type { ConnectorSide } from './device-ports.ts';
import type { Shared } from './shared.ts';

const standByName = 'sensorium-bridge';

type BrokerSettings = Extract<ConnectorSettings, { kind: 'bridge' }>['broker'];

/** A connector of kind `bridge`: its devices are those of an external broker. */
export async function startBridgeSide(
  side: ConnectorSide & { broker: BrokerSettings },
): Promise<void> {
  const { settings, shared, observer } = side;
  const { config, log, db, bus } = shared;
  const identifier = createDeviceIdentifier({ db, bus });
  shared.releases.add(() => identifier.close());
  const broker = await readBroker(side.broker, settings.id);
  const { maxPacketBytes } = config.mqtt;
  const { rejectionsPerMessage } = config.quotas;
  const start = () =>
    startBridge(
      { broker, maxPacketBytes, rejectionsPerMessage, log, observe: observer },
      { ...devicePorts(side), identify: identifier.identify },
    );
  if (broker.shareName === null) {
    const startLease = leaseFor(broker, settings.id, shared);
    const standBy = await startStandBy({ broker, startLease, startBridge: start, log });
    shared.edges.add((drainMs) => standBy.close({ drainMs }));
  } else {
    const bridge = start();
    shared.edges.add((drainMs) => bridge.close({ drainMs }));
    await bridge.ready;
  }
}

/** Held by one process at a time: the broker's session belongs to the service, not to a bridge. */
function leaseFor(
  { url, clientId }: BrokerAddress,
  connectorId: number,
  { storage, log }: Shared,
): StartLease {
  return (holder) =>
    startLease({
      ...holder,
      connectionString: storage.connectionString,
      name: `${url} ${clientId}`,
      holder: `sensorium connector ${connectorId}, process ${process.pid}`,
      onError: (err) => log.warn({ err, broker: url }, 'the database says not who is to serve'),
    });
}

async function readBroker(broker: BrokerSettings, connectorId: number): Promise<BrokerAddress> {
  const { url, username, passwordFile, caFile, shareName } = broker;
  const read = (file: string) =>
    readFile(file).catch((error: Error) => {
      throw new StartError(`connectors: ${file} cannot be read (${error.message}).`);
    });
  // Brokers are told to take the name for the session's: those who share must not share one.
  const user = username ?? (shareName === null ? standByName : `${standByName}-${connectorId}`);
  return {
    url,
    username: user,
    shareName,
    // Of the connector or the service, not of the process: the next one takes up what this one left.
    clientId: shareName === null ? user : `${shareName}-${connectorId}`,
    password: passwordFile === undefined ? undefined : String(await read(passwordFile)).trim(),
    ca: caFile === undefined ? undefined : await read(caFile),
  };
}
