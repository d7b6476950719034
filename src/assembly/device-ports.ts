import { DeviceLimits } from '../../connector/device/limits.ts';
import type {
  ConnectorLimits,
  ConnectorPorts,
  DevicePorts,
  Observer,
} from '../../connector/ports.ts';
import type { PresenceNotice } from '../bus/bus.ts';
import type { Config } from '../config/config.ts';
import type {
  AccountThrottle,
  AskedHow,
  DeviceIdentity,
  Downlink,
  DownTopic,
} from '../contract/uplink.ts';
import type { CommandHandOver } from '../commands/hand-over.ts';
import { watchOtherProcesses } from '../db/lease.ts';
import {
  atConnector,
  createDeviceAuthenticator,
  type DeviceAuthenticator,
} from '../devices/authenticate.ts';
import { type PresenceRecorder, startPresence } from '../devices/presence.ts';
import { type LoginWatch, startLoginWatch } from '../devices/refused-logins.ts';
import { createTokenHandover } from '../devices/tokens.ts';
import type { Ingest } from '../ingest/ingest.ts';
import { isUuid } from '../lib/text.ts';
import { observeRates } from '../metrics/observe.ts';
import type { Downlinks } from '../profiles/downlinks.ts';
import type { Shared } from './shared.ts';

/** The dependencies of every connector of this process. */
export type ConnectorContext = {
  shared: Shared;
  downlinks: DeviceDownlinks;
  ingest: Ingest;
  throttle: AccountThrottle;
  presence: PresenceRecorder;
  observer: Observer;
  /** A device has one rate, whichever transports it uses. */
  deviceLimits: DeviceLimits;
};

/** What is due to devices, commands included. */
type DeviceDownlinks = Downlinks & {
  subscribed(device: DeviceIdentity, topics: DownTopic[], how?: AskedHow): Promise<Downlink[]>;
};

/** A command comes last: what it acts on may be set by what comes before. */
export function withCommands(downlinks: Downlinks, commands: CommandHandOver): DeviceDownlinks {
  const take = async (device: DeviceIdentity, how: AskedHow): Promise<Downlink[]> => {
    const command = await commands.take(device, how);
    return command ? [command] : [];
  };
  return {
    async subscribed(device, topics, how: AskedHow = 'subscribed') {
      const messages = await downlinks.subscribed(device, topics);
      return topics.includes('command') ? [...messages, ...(await take(device, how))] : messages;
    },
    due: (device, topic) =>
      topic === 'command' ? take(device, 'due') : downlinks.due(device, topic),
    delivered: (device, message) =>
      message.command
        ? commands.delivered(device, message.command.id)
        : downlinks.delivered(device, message),
    async handOver(device) {
      await Promise.all([downlinks.handOver(device), commands.offerAgain(device)]);
    },
  };
}

/** The ports of connectors of every kind. */
export function devicePorts({
  shared,
  downlinks,
  ingest,
  throttle,
  presence,
}: ConnectorContext): DevicePorts {
  return {
    ingest: ingest.ingest,
    withdraw: ingest.withdraw,
    subscribed: downlinks.subscribed,
    due: downlinks.due,
    delivered: downlinks.delivered,
    presence: presence.presence,
    throttle,
    bus: shared.bus,
    onAccountDisabled: shared.disabled.onDisabled,
    clock: shared.clock,
  };
}

/** Checks devices' logins, and records refused ones. */
export type DeviceLogins = {
  authenticator: DeviceAuthenticator;
  watch: LoginWatch;
  findDueToken: ReturnType<typeof createTokenHandover>;
};

/** Shared by all connectors of the process, so that what one learns of a token the others know. */
export function startDeviceLogins(shared: Shared): DeviceLogins {
  const { db, bus, clock, disabled, disposables } = shared;
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
  disposables.add('device logins', () => authenticator.close());
  return {
    authenticator,
    watch,
    findDueToken: createTokenHandover({ db, keys, secretIds, clock }),
  };
}

/** The ports of connectors that authenticate devices. */
export function connectorPorts(
  context: ConnectorContext,
  connectorId: number,
  { authenticator: { authenticateDevice, isStillAllowed }, watch, findDueToken }: DeviceLogins,
): ConnectorPorts {
  const { limitsOf } = context.shared;
  return {
    ...devicePorts(context),
    async subscribed(device, topics, how) {
      const messages = await context.downlinks.subscribed(device, topics, how);
      const token = topics.includes('token') ? await findDueToken(device.deviceId) : null;
      return token ? [...messages, token] : messages;
    },
    authenticateDevice: atConnector(connectorId, authenticateDevice),
    isStillAllowed,
    loginRefused: watch.refused,
    maxConnectionsOf: (accountId) => limitsOf(accountId).connections,
    othersWait: context.ingest.othersWait,
    measurementsPerSecond: (accountId) => limitsOf(accountId).measurementsPerSecond,
  };
}

/** Counts the use of devices' rates in this process. */
export function deviceLimitsOf(
  shared: Shared,
  ingest: Ingest,
  throttle: AccountThrottle,
): DeviceLimits {
  const { config, limitsOf, metrics, monotonicClock } = shared;
  return new DeviceLimits({
    ports: {
      throttle,
      othersWait: ingest.othersWait,
      measurementsPerSecond: (accountId) => limitsOf(accountId).measurementsPerSecond,
      mayCatchUp: startCatchUpOf(shared, ingest),
    },
    limits: connectorLimits(config),
    now: monotonicClock,
    observe: observeRates(metrics.registry),
  });
}

/** What one device may do, over any protocol. */
export function connectorLimits({ mqtt, quotas }: Config): ConnectorLimits {
  return { ...mqtt, rejectionsPerMessage: quotas.rejectionsPerMessage };
}

/** Records the refused logins of this process, and which devices log in again. */
export function startLoginWatchOf({ db, clock, log, disposables }: Shared): LoginWatch {
  const onError = (err: unknown) =>
    log
      .child({ component: 'devices' })
      .warn(
        { event: 'logins.unwritten', err },
        'Refused logins of devices could not be written; the service will try again.',
      );
  const { refused, letIn, close } = startLoginWatch({ db, clock, onError });
  disposables.add('refused logins of devices', close);
  return {
    // The name of an unknown device can be any text.
    refused: (login) => {
      if (isUuid(login.uuid)) refused(login);
    },
    letIn,
  };
}

/**
 * How long devices are held to their rates after another account was active. Short enough to let devices catch up
 * between another account's messages if those are rare; accounts that send more often are not disturbed.
 */
const quietMs = 250;

/**
 * Whether an account's devices may exceed their rates, because nobody else needs the machine. That is, within `quietMs`
 * this process stored no message and began no request or import of another account, and no other process kept the
 * database busy. Undefined if they never may.
 */
function startCatchUpOf(
  shared: Shared,
  ingest: Pick<Ingest, 'isAlone'>,
): ((accountId: number) => boolean) | undefined {
  const { config, db, monotonicClock, disposables, requests } = shared;
  if (!config.mqtt.catchUp) return undefined;
  const processes = watchOtherProcesses({ db, monotonicClock });
  disposables.add('watch of other processes', async () => processes.close());
  return (accountId) =>
    ingest.isAlone(accountId, quietMs) &&
    monotonicClock() - requests.than(accountId) > quietMs &&
    !processes.areBusy();
}

/** Records which devices are connected at a connector of this process. */
export async function startPresenceOf(
  shared: Shared,
  connectorId: number,
): Promise<PresenceRecorder> {
  const { db, bus, log, clock, disposables } = shared;
  const devicesLog = log.child({ component: 'devices', connectorId });
  const onError = (err: unknown) =>
    devicesLog.warn(
      { event: 'presence.unwritten', err },
      'The list of connected devices could not be stored; the service will try again.',
    );
  const tell = (accounts: PresenceNotice[]) => bus.publish('presence', { accounts });
  const presence = await startPresence({ db, connectorId, clock, tell, onError });
  disposables.add('presence', () => presence.close());
  return presence;
}
