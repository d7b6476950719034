import type { Observer } from '../../connector/options.ts';
import type { DevicePorts } from '../../connector/ports.ts';
import type { AccountThrottle, DeviceIdentity } from '../contract/uplink.ts';
import type { Presence } from '../devices/presence.ts';
import type { Ingest } from '../ingest/ingest.ts';
import type { Downlinks } from '../profiles/downlinks.ts';
import type { Shared } from './shared.ts';

/** What any connector of this process is made with. */
export type ConnectorSide = {
  shared: Shared;
  downlinks: Downlinks;
  ingest: Ingest;
  holds: AccountThrottle;
  presence: Presence;
  observer: Observer;
};

/** What connectors of both kinds are handed. */
export function devicePorts({
  shared,
  downlinks,
  ingest,
  holds,
  presence,
}: ConnectorSide): DevicePorts {
  return {
    ingest: ingest.ingest,
    withdraw: ingest.withdraw,
    subscribed: downlinks.subscribed,
    due: downlinks.due,
    delivered: downlinks.delivered,
    presence: presence.presence,
    holds,
    bus: shared.bus,
    onAccountDisabled: shared.disabled.onDisabled,
    clock: shared.clock,
  };
}

/** What finds devices, with the connector that they are seen at then. */
export function atConnector<T>(
  connectorId: number,
  find: (wanted: T) => Promise<DeviceIdentity | null>,
): (wanted: T) => Promise<DeviceIdentity | null> {
  return async (wanted) => {
    const device = await find(wanted);
    return device && { ...device, connectorId };
  };
}
