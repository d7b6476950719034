import { readFile } from 'node:fs/promises';
import { startBridge } from '../../connector/bridge/bridge.ts';
import type { BrokerAddress } from '../../connector/bridge/ports.ts';
import type { Observer } from '../../connector/options.ts';
import { createDeviceIdentifier } from '../devices/identify.ts';
import type { Presence } from '../devices/presence.ts';
import type { Ingest } from '../ingest/ingest.ts';
import type { Downlinks } from '../profiles/downlinks.ts';
import type { ConnectorSettings } from '../settings.ts';
import { StartError } from '../start-error.ts';
import type { Shared } from './shared.ts';

/** Shorter than what a process is given to stop in. */
export const drainMs = 6_000;

/** What any connector of this process is made with. */
export type ConnectorSide = {
  settings: ConnectorSettings;
  shared: Shared;
  downlinks: Downlinks;
  ingest: Ingest;
  presence: Presence;
  observer: Observer;
};

type BrokerSettings = Extract<ConnectorSettings, { kind: 'bridge' }>['broker'];

/** A connector of kind `bridge`: its devices are those of an external broker. */
export async function startBridgeSide(
  side: ConnectorSide & { broker: BrokerSettings },
): Promise<void> {
  const { settings, shared, downlinks, ingest, presence, observer, broker } = side;
  const { config, log, db, bus, clock } = shared;
  const identifier = createDeviceIdentifier({ db, bus });
  shared.releases.add(() => identifier.close());
  const bridge = await startBridge(
    {
      broker: await readBroker(broker, settings.id),
      maxPacketBytes: config.mqtt.maxPacketBytes,
      log,
      observe: observer,
    },
    {
      identify: identifier.identify,
      ingest: ingest.ingest,
      subscribed: downlinks.subscribed,
      due: downlinks.due,
      delivered: downlinks.delivered,
      presence: presence.presence,
      bus,
      clock,
    },
  );
  shared.edges.add(() => bridge.close({ drainMs }));
}

async function readBroker(broker: BrokerSettings, connectorId: number): Promise<BrokerAddress> {
  const { url, username, passwordFile, caFile, shareName } = broker;
  const read = (file: string) =>
    readFile(file).catch((error: Error) => {
      throw new StartError(`connectors: ${file} cannot be read (${error.message}).`);
    });
  return {
    url,
    // Brokers are told to take the name for the session's: two bridges must not share one.
    username: username ?? `sensorium-bridge-${connectorId}`,
    shareName,
    // Of the connector, not of the process: the next one takes up what this one left.
    clientId: `${shareName ?? 'sensorium'}-${connectorId}`,
    password: passwordFile === undefined ? undefined : String(await read(passwordFile)).trim(),
    ca: caFile === undefined ? undefined : await read(caFile),
  };
}
