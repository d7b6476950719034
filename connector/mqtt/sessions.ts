import {
  type DeviceIdentity,
  downPrefix,
  type Rejection,
  type Uplink,
  upPrefix,
} from '../../src/contract/uplink.ts';
import { type Rate, TokenBucket } from '../../src/lib/token-bucket.ts';
import type { DeviceLimits } from '../device/limits.ts';
import { excerptOf, maxTopicLength } from '../device/receive.ts';
import type { ConnectorPorts } from '../ports.ts';
import type { ParkedMessage } from './backpressure.ts';
import type { AccountConnections, Connection, Device } from './connection.ts';
import type { MonotonicClock } from '../../src/lib/clock-readings.ts';

export type Registry = ReturnType<typeof createRegistry>;

type RegistryOptions = {
  deviceLimits: DeviceLimits;
  /** How often one device may connect. */
  connectRate: Rate;
  maxConnectionsPerDevice: number;
  ports: Pick<ConnectorPorts, 'presence'>;
  now: MonotonicClock;
  /** Sessions of a device were taken over twice within a minute. */
  onTakeovers: (identity: DeviceIdentity) => void;
};

const noticeEveryMs = 60_000;
const takeoversWithinMs = 60_000;

/** The devices connected here. A device is remembered after its last connection until its rates have recovered. */
export function createRegistry(options: RegistryOptions) {
  const { deviceLimits, connectRate, maxConnectionsPerDevice, ports, now } = options;
  const { presence } = ports;
  const connections = new Set<Connection>();
  const devices = new Map<string, Device>();
  const accounts = new Map<number, AccountConnections>();
  let connectedDevices = 0;

  function deviceOf(identity: DeviceIdentity): Device {
    const known = devices.get(identity.uuid);
    if (known && known.identity.deviceId === identity.deviceId) return known;
    const monotonicMs = now();
    const account = accountOf(identity.accountId);
    account.devices += 1;
    if (known) leave(known);
    const device: Device = {
      identity,
      account,
      upPrefix: upPrefix(identity.uuid),
      downPrefix: downPrefix(identity.uuid),
      largeTopic: `${upPrefix(identity.uuid)}measurements`,
      connections: [],
      rates: deviceLimits.enter(identity),
      connects: new TokenBucket(connectRate, monotonicMs),
      noticedMs: -Infinity,
      takenOverMs: -Infinity,
      seenReportedMs: -Infinity,
      timer: null,
    };
    devices.set(identity.uuid, device);
    return device;
  }

  function accountOf(id: number): AccountConnections {
    const known = accounts.get(id);
    if (known) return known;
    const account: AccountConnections = {
      id,
      devices: 0,
      connections: 0,
      bytes: 0,
      parkedBytes: 0,
      waiting: new Set(),
      paused: new Set(),
      timer: null,
    };
    accounts.set(id, account);
    return account;
  }

  /** The same client identifier takes over its own session [MQTT-3.1.4-2]; a client without one has none. */
  function closeSession(
    device: Device,
    { clientId, id }: Pick<Connection, 'clientId' | 'id'>,
  ): void {
    if (clientId === '') return;
    for (const other of device.connections) {
      if (other.clientId !== clientId || other.id === id || other.ending !== null) continue;
      other.close('replaced');
      const monotonicMs = now();
      const isAgain = monotonicMs - device.takenOverMs < takeoversWithinMs;
      device.takenOverMs = monotonicMs;
      if (isAgain) options.onTakeovers(device.identity);
    }
  }

  function leave({ account, rates }: Device): void {
    deviceLimits.leave(rates);
    account.devices -= 1;
    forgetUnused(account);
  }

  /** What ended connections left behind belongs to their account until it is stored or given up. */
  function forgetUnused({
    id,
    devices,
    connections,
    bytes,
    parkedBytes,
  }: AccountConnections): void {
    if (devices + connections + bytes + parkedBytes === 0) accounts.delete(id);
  }

  return {
    /** All connections, logged in or not. */
    connections,

    /** Whether the device may connect once more now. If so, this counts it. */
    takeConnect(identity: DeviceIdentity): boolean {
      const { connects } = deviceOf(identity);
      const monotonicMs = now();
      if (connects.waitMs(connectRate, monotonicMs) > 0) return false;
      connects.take(1, connectRate, monotonicMs);
      return true;
    },

    /** Whether the account may have one more connection. One that replaces another does not add to them. */
    mayConnect({ clientId }: Connection, identity: DeviceIdentity, limit: number): boolean {
      const open = deviceOf(identity).connections.filter(({ ending }) => ending === null);
      const isTakeover = clientId !== '' && open.some((other) => other.clientId === clientId);
      const ends = isTakeover || open.length >= maxConnectionsPerDevice ? 1 : 0;
      return deviceOf(identity).account.connections - ends < limit;
    },

    /** Whether it is time to report again why the device is not let in. */
    mayNotice(identity: DeviceIdentity): boolean {
      const device = deviceOf(identity);
      const monotonicMs = now();
      if (monotonicMs - device.noticedMs < noticeEveryMs) return false;
      device.noticedMs = monotonicMs;
      return true;
    },

    /** Gives a connection its device. Closes the same session's connection, and the oldest beyond the limit. */
    admit(connection: Connection, identity: DeviceIdentity): void {
      const device = deviceOf(identity);
      connection.device = device;
      closeSession(device, connection);
      device.connections.push(connection);
      device.account.connections += 1;
      if (device.connections.length === 1) {
        connectedDevices += 1;
        presence(identity, 'connected');
      }
      const open = device.connections.filter(({ ending }) => ending === null);
      if (open.length > maxConnectionsPerDevice) open[0]?.close('too-many-connections');
    },

    remove(connection: Connection): void {
      connections.delete(connection);
      const { device } = connection;
      const index = device?.connections.indexOf(connection) ?? -1;
      if (!device || index < 0) return;
      device.connections.splice(index, 1);
      device.account.connections -= 1;
      if (device.connections.length > 0) return;
      connectedDevices -= 1;
      presence(device.identity, 'disconnected');
    },

    listConnectionsOf: (uuid: string): Connection[] => [...(devices.get(uuid)?.connections ?? [])],

    /** Another process, or this one, has taken over a session. */
    closeSessionsBut(uuid: string, clientId: string, connection: string): void {
      const device = devices.get(uuid);
      if (device) closeSession(device, { clientId, id: connection });
    },

    /** Forgets devices that are gone and could send at full rate again, and accounts with nothing left. */
    forgetIdle(): void {
      const monotonicMs = now();
      for (const [uuid, device] of devices) {
        if (device.connections.length > 0) continue;
        const isIdle =
          device.connects.isFull(connectRate, monotonicMs) &&
          monotonicMs - device.noticedMs >= noticeEveryMs &&
          monotonicMs - device.takenOverMs >= takeoversWithinMs &&
          deviceLimits.isFull(device.rates);
        if (!isIdle) continue;
        devices.delete(uuid);
        leave(device);
      }
      for (const account of accounts.values()) forgetUnused(account);
    },

    isConnected: (uuid: string) => (devices.get(uuid)?.connections.length ?? 0) > 0,

    countDevices: () => connectedDevices,
  };
}

type LimitNotice = 'too-many-connects' | 'too-many-connections';

const messages: Record<LimitNotice, string> = {
  'too-many-connects':
    'The device reconnects too often: further connections are refused for a moment.',
  'too-many-connections':
    "The account's quota connections is used up: this connection was refused. Reported once a minute.",
};

/** Stores, at most once a minute, a rejection that says why a valid device is not let in. */
export function noticeLimit(
  ports: Pick<ConnectorPorts, 'ingest' | 'clock'>,
  registry: Pick<Registry, 'mayNotice'>,
  identity: DeviceIdentity,
  reason: LimitNotice,
): void {
  if (registry.mayNotice(identity))
    tell(ports, identity, 'CONNECT', { reason, message: messages[reason] });
}

/** Stores, at most once a minute, a rejection that says why a message was not sent to a device. */
export function tellOfTooLarge(
  ports: Pick<ConnectorPorts, 'ingest' | 'clock'>,
  registry: Pick<Registry, 'mayNotice'>,
  identity: DeviceIdentity,
  packet: { topic: string; bytes: number; mostBytes: number },
): void {
  const { topic, bytes, mostBytes } = packet;
  const message = `A message of ${bytes} bytes was not sent: the device accepts packets of at most ${mostBytes} bytes (MQTT 5, Maximum Packet Size).`;
  if (registry.mayNotice(identity))
    tell(ports, identity, topic, { reason: 'packet-too-large', message });
}

/**
 * Stores, at most once a minute, a rejection that says that a session is taken over repeatedly. A single takeover is
 * normal: a device may come back before its lost connection is noticed.
 */
export function tellOfTakeovers(
  ports: Pick<ConnectorPorts, 'ingest' | 'clock'>,
  registry: Pick<Registry, 'mayNotice'>,
  identity: DeviceIdentity,
): void {
  const message =
    "The device's session was taken over twice within a minute: its link drops often, or two clients use the same client identifier.";
  if (registry.mayNotice(identity))
    tell(ports, identity, 'CONNECT', { reason: 'session-taken-over', message });
}

/** Stores, at most once a minute, a rejection that says that a missing PUBACK closed the connection. */
export function tellOfUnacknowledged(
  ports: Pick<ConnectorPorts, 'ingest' | 'clock'>,
  registry: Pick<Registry, 'mayNotice'>,
  identity: DeviceIdentity,
  topic: string,
): void {
  const message =
    'The device did not acknowledge this message (PUBACK) in time: its connection was closed.';
  if (registry.mayNotice(identity))
    tell(ports, identity, topic, { reason: 'message-not-acknowledged', message });
}

/**
 * Stores a rejection of a message that a device published outside its topics, which ends its connection. Each is
 * reported, like any bad message: ingest limits what is kept of a device, and a device may connect only so often.
 */
export function tellOfForeignTopic(
  ports: Pick<ConnectorPorts, 'ingest' | 'clock'>,
  { identity, upPrefix }: Device,
  { topic, payload }: ParkedMessage,
): void {
  const message = `A device may publish only below ${upPrefix}: its connection was closed.`;
  tell(
    ports,
    identity,
    topic.slice(0, maxTopicLength),
    { reason: 'foreign-topic', message },
    payload,
  );
}

/** Stores a rejection. If that fails, only this explanation is lost. */
function tell(
  ports: Pick<ConnectorPorts, 'ingest' | 'clock'>,
  identity: DeviceIdentity,
  topic: string,
  rejection: Rejection,
  payload?: Buffer,
): void {
  const uplink: Uplink = {
    topic,
    excerpt: payload ? excerptOf(payload) : '',
    arrivedTs: ports.clock(),
    content: { kind: 'none' },
    rejections: [rejection],
  };
  ports.ingest(identity, uplink, { isWithdrawn: false, stored() {}, failed() {} });
}
