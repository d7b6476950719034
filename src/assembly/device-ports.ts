import type { ConnectorLimits, Observer } from '../../connector/options.ts';
import type { ConnectorPorts, DevicePorts } from '../../connector/ports.ts';
import type { AccountThrottle, DeviceIdentity } from '../contract/uplink.ts';
import type { Config } from '../config/config.ts';
import { createDeviceAuthenticator, type DeviceAuthenticator } from '../devices/authenticate.ts';
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

/** What connectors of all kinds are handed. */
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

/** One for all connectors of the process: what one has learned of a token, the others know. */
export function startDeviceLogins({
  db,
  keys,
  bus,
  clock,
  disabled,
  releases,
}: Shared): DeviceAuthenticator {
  const authenticator = createDeviceAuthenticator({
    db,
    keys: keys.deviceTokens,
    bus,
    clock,
    isDisabled: disabled.has,
  });
  releases.add('device logins', () => authenticator.close());
  return authenticator;
}

/** What connectors are handed that let devices in. */
export function connectorPorts(
  side: ConnectorSide,
  connectorId: number,
  { authenticateDevice, isStillAllowed }: DeviceAuthenticator,
): ConnectorPorts {
  const { limitsOf } = side.shared;
  return {
    ...devicePorts(side),
    authenticateDevice: atConnector(connectorId, authenticateDevice),
    isStillAllowed,
    maxConnectionsOf: (accountId) => limitsOf(accountId).connections,
    othersWait: side.ingest.othersWait,
    measurementsPerSecond: (accountId) => limitsOf(accountId).measurementsPerSecond,
  };
}

/** What one device may do, over whatever protocol. */
export function connectorLimits({ mqtt, quotas }: Config): ConnectorLimits {
  return { ...mqtt, rejectionsPerMessage: quotas.rejectionsPerMessage };
}
