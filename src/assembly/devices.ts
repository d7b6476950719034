import { randomUUID } from 'node:crypto';
import type { HttpConnector } from '../../connector/http/server.ts';
import type { Connector } from '../../connector/mqtt/server.ts';
import type { ConnectorSettings } from '../config/settings.ts';
import type { Ingest } from '../ingest/ingest.ts';
import { observeBridges } from '../metrics/observe-bridge.ts';
import { observeConnector } from '../metrics/observe.ts';
import { createDownlinks } from '../profiles/downlinks.ts';
import { type BridgeSide, startBridgeSide } from './bridges.ts';
import { type ConnectorSide, startDeviceLogins, startRatesOf } from './device-ports.ts';
import { startHeartbeatOf } from './heartbeat.ts';
import { startIngestion } from './ingest.ts';
import { startListeningOf } from './listening.ts';
import { startMqtt } from './mqtt.ts';
import { startPresenceOf } from './presence.ts';
import type { Shared } from './shared.ts';
import { startTicksOf } from './ticks.ts';
import { startUplink } from './uplink.ts';

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

/** Without `--id`: every bridge, and the first connector of kind mqtt and of kind http. */
function pickConnectors({ config: { role, connectors } }: Shared): ConnectorSettings[] {
  if (role.name === 'connector') return connectors.filter(({ id }) => id === role.id);
  const own = ['mqtt', 'http'].map((kind) => connectors.find((one) => one.kind === kind));
  return connectors.filter((one) => own.includes(one) || one.kind === 'bridge');
}
