import { createRateStore, type RateStore } from '../../connector/device/rates.ts';
import type { ConnectorLimits, Observer } from '../../connector/options.ts';
import type { ConnectorPorts, DevicePorts } from '../../connector/ports.ts';
import type { AccountThrottle, DeviceIdentity } from '../contract/uplink.ts';
import type { Config } from '../config/config.ts';
import { createDeviceAuthenticator, type DeviceAuthenticator } from '../devices/authenticate.ts';
import { createTokenHandover } from '../devices/token-handover.ts';
import type { LoginWatch } from '../devices/login-watch.ts';
import type { PresenceRecorder } from '../devices/presence.ts';
import type { Ingest } from '../ingest/ingest.ts';
import type { Downlinks } from '../profiles/downlinks.ts';
import { observeRates } from '../metrics/observe.ts';
import { startCatchUpOf } from './catch-up.ts';
import { startLoginWatchOf } from './login-watch.ts';
import type { Shared } from './shared.ts';

/** What any connector of this process is made with. */
export type ConnectorSide = {
  shared: Shared;
  downlinks: Downlinks;
  ingest: Ingest;
  holds: AccountThrottle;
  presence: PresenceRecorder;
  observer: Observer;
  /** Devices have one rate, whichever transports they use. */
  rateStore: RateStore;
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

/** What checks devices' logins, and what keeps those that were refused. */
export type DeviceLogins = {
  authenticator: DeviceAuthenticator;
  watch: LoginWatch;
  findDueToken: ReturnType<typeof createTokenHandover>;
};

/** One for all connectors of the process: what one has learned of a token, the others know. */
export function startDeviceLogins(shared: Shared): DeviceLogins {
  const { db, bus, clock, disabled, releases } = shared;
  const { deviceTokens: keys, secretIds } = shared.keys;
  const watch = startLoginWatchOf(shared);
  const authenticator = createDeviceAuthenticator({
    db,
    keys,
    secretIds,
    bus,
    clock,
    isDisabled: disabled.has,
    watch,
  });
  releases.add('device logins', () => authenticator.close());
  return {
    authenticator,
    watch,
    findDueToken: createTokenHandover({ db, keys, secretIds, clock }),
  };
}

/** What connectors are handed that let devices in. */
export function connectorPorts(
  side: ConnectorSide,
  connectorId: number,
  { authenticator: { authenticateDevice, isStillAllowed }, watch, findDueToken }: DeviceLogins,
): ConnectorPorts {
  const { limitsOf } = side.shared;
  return {
    ...devicePorts(side),
    async subscribed(device, topics) {
      const messages = await side.downlinks.subscribed(device, topics);
      const token = topics.includes('token') ? await findDueToken(device.deviceId) : null;
      return token ? [...messages, token] : messages;
    },
    authenticateDevice: atConnector(connectorId, authenticateDevice),
    isStillAllowed,
    loginRefused: watch.refused,
    maxConnectionsOf: (accountId) => limitsOf(accountId).connections,
    othersWait: side.ingest.othersWait,
    measurementsPerSecond: (accountId) => limitsOf(accountId).measurementsPerSecond,
  };
}

/** What devices of this process have used of their rates. */
export function startRatesOf(shared: Shared, ingest: Ingest): RateStore {
  const { config, limitsOf, metrics, monotonicClock } = shared;
  return createRateStore({
    ports: {
      othersWait: ingest.othersWait,
      measurementsPerSecond: (accountId) => limitsOf(accountId).measurementsPerSecond,
      mayCatchUp: startCatchUpOf(shared, ingest),
    },
    limits: connectorLimits(config),
    now: monotonicClock,
    observe: observeRates(metrics.registry),
  });
}

/** What one device may do, over whatever protocol. */
export function connectorLimits({ mqtt, quotas }: Config): ConnectorLimits {
  return { ...mqtt, rejectionsPerMessage: quotas.rejectionsPerMessage };
}
