import type { Bus } from '../src/bus/bus.ts';
import type {
  AccountThrottle,
  Delivery,
  DeviceIdentity,
  Downlink,
  DownTopic,
  DueTopic,
  Uplink,
} from '../src/contract/uplink.ts';
import type { ConnectionPlaces } from '../src/lib/connection-places.ts';
import { codeOf } from '../src/lib/thrown.ts';
import type { Log } from '../src/log/logger.ts';
import type { Clock, MonotonicClock } from '../src/lib/clock-readings.ts';

/** What a device says of itself: its uuid and its token. `address`: where it comes from, if known. */
export type DeviceLogin = { username: string; password: string; address?: string };

/** Why the login of a device is refused whose token was not looked at, or is right. */
export type LoginRefusal =
  'too-many-connects' | 'too-many-connections' | 'foreign-will' | 'no-client-identifier';

/**
 * What a connector of any kind is given. What is promised may fail with an error whose `code` is
 * `unavailable` (the store is away) or `device-gone` (the device was removed meanwhile).
 */
export type DevicePorts = {
  /**
   * Stores the message and tells `delivery`. Called in the order of arrival, without waiting for the
   * message before: the messages of a device take effect in the order of these calls.
   */
  ingest(device: DeviceIdentity, uplink: Uplink, delivery: Delivery): void;
  /** Messages of the device were withdrawn: those that no transaction holds are to fail now. */
  withdraw(device: DeviceIdentity): void;
  /** The device subscribed to these topics: what it is to be sent now, from the database. */
  subscribed(device: DeviceIdentity, topics: DownTopic[]): Promise<Downlink[]>;
  /** What is due for a connected device after a `device` notice. */
  due(device: DeviceIdentity, topic: DueTopic): Promise<Downlink[]>;
  /** The device acknowledged a message that has a `pId` or a `keptId` (or it was written at QoS 0). */
  delivered(device: DeviceIdentity, message: Downlink): Promise<void>;
  /**
   * Its first connection here (or poll that waits) began, its last one ended, or something was read of it. Told, not
   * awaited, and `seen` often: a failure is the receiver's to log.
   */
  presence(device: DeviceIdentity, change: 'connected' | 'disconnected' | 'seen'): void;
  /** Slows devices of accounts that bring more than they may. Absent: nobody waits. */
  throttle?: AccountThrottle | undefined;
  bus: Bus;
  /** Told of each account that is shut out: no device of it may stay. Gives what ends that. */
  onAccountDisabled(listener: (accountId: number) => void): () => void;
  clock: Clock;
};

/** With what lets devices in. */
export type ConnectorPorts = DevicePorts & {
  /** Null when the credentials open nothing. Costs no query once the device's token version is known. */
  authenticateDevice(credentials: DeviceLogin): Promise<DeviceIdentity | null>;
  /** Such a login was refused; those that `authenticateDevice` refuses it knows of. Told, not awaited. */
  loginRefused?(login: {
    uuid: string;
    accountId?: number | undefined;
    reason: LoginRefusal;
    address?: string | undefined;
  }): void;
  /** Whether messages of other accounts wait for a transaction. Asked often. */
  othersWait(accountId: number): boolean;
  /**
   * Whether nobody but this account wants the machine, so that its devices may send more than their rates. Asked
   * often. Absent: they never may.
   */
  mayCatchUp?: ((accountId: number) => boolean) | undefined;
  /** What is read of an account's devices, in measurements a second, while messages of others wait. */
  measurementsPerSecond(accountId: number): number;
  /** Whether a device that was let in still is; called when `access` tells of a change. */
  isStillAllowed(device: DeviceIdentity, credentials: DeviceLogin): Promise<boolean>;
  /** Connections that an account's devices may have here. Absent: any number. */
  maxConnectionsOf?: ((accountId: number) => number) | undefined;
};

/** The store, or the way to it, is away for now. */
export const isUnavailableError = (error: unknown) => codeOf(error) === 'unavailable';

/** The device was removed meanwhile. */
export const isGone = (error: unknown) => codeOf(error) === 'device-gone';

/** What one device, and the connector as a whole, may take up; the defaults stand in config/. */
export type ConnectorLimits = {
  maxPacketBytes: number;
  /** Of a PUBLISH to `up/measurements`, where it is more; null: as all others. */
  maxMeasurementPacketBytes: number | null;
  maxConnectBytes: number;
  connectTimeoutMs: number;
  maxKeepaliveSeconds: number;
  maxConnectionsPerDevice: number;
  maxSubscriptions: number;
  maxTopicLevels: number;
  messagesPerSecond: number;
  messagesBurst: number;
  measurementsPerSecond: number;
  connectsPerSecond: number;
  /** Of one address: connections that are read and not let in yet, and further ones that wait. */
  connectingPerAddress: number;
  waitingPerAddress: number;
  refusedLoginsPerSecond: number;
  /** Connections of one device that are let in: on average, and at once. */
  reconnectsPerSecond: number;
  reconnectsBurst: number;
  storeTimeoutMs: number;
  /** Of one message so many rejections are told one by one, the others counted. */
  rejectionsPerMessage: number;
};

/** The most bytes that a message of measurements may have, with its packet's head. */
export const mostMeasurementBytes = ({
  maxPacketBytes,
  maxMeasurementPacketBytes,
}: Pick<ConnectorLimits, 'maxPacketBytes' | 'maxMeasurementPacketBytes'>): number =>
  Math.max(maxPacketBytes, maxMeasurementPacketBytes ?? 0);

/** Bounds that no user has a reason to turn. */
export type Tuning = {
  /** Messages of one connection that wait for their commit; beyond, its socket is not read. */
  maxUnackedMessages: number;
  maxUnackedBytes: number;
  /** The same for all connections together, in bytes with `messageOverheadBytes` for each message. */
  maxUnackedTotalBytes: number;
  /** Of messages that wait because their account brings too much: for one account, and for all. */
  maxParkedBytes: number;
  maxParkedTotalBytes: number;
  /** What one costs beside its payload, here and in ingest; measured. */
  messageOverheadBytes: number;
  /** Packets that have begun and not ended, of all connections; beyond, the one that began first is closed. */
  maxBegunBytes: number;
  /** Measurements that are larger than other packets may be, and have begun and not ended. */
  maxLargeBytes: number;
  /** One that is not whole for this long closes its connection, from when it had room. */
  largeTimeoutMs: number;
  /** How long a request waits until its large body has room. */
  largePatienceMs: number;
  /** A poll over HTTP that is beyond a rate is refused so late. */
  pollRefusalMs: number;
  /** QoS 2 messages of one connection between PUBREC and PUBREL. */
  maxUnreleased: number;
  /** Messages that wait for one connection's acknowledgement of the one before. */
  maxQueuedDownlinks: number;
  /** What is being read for devices, or waits for their acknowledgement, of all together. */
  maxDownlinkBytes: number;
  /** A message towards a device that is not acknowledged for this long closes the connection. */
  downlinkTimeoutMs: number;
  /** The same while devices of others wait for the room that such messages take. */
  wantedDownlinkTimeoutMs: number;
  /** A socket that takes no bytes for this long is closed. */
  drainTimeoutMs: number;
  /**
   * Connections that wait for their turn to be let in; further ones are closed. Each has an open file, also when it was
   * reset: nobody reads it, and so nobody is told.
   */
  maxWaitingConnections: number;
  sweepIntervalMs: number;
};

export const defaultTuning: Tuning = {
  maxUnackedMessages: 100,
  maxUnackedBytes: 524_288,
  maxUnackedTotalBytes: 33_554_432,
  maxParkedBytes: 4_194_304,
  maxParkedTotalBytes: 33_554_432,
  messageOverheadBytes: 2_560,
  maxBegunBytes: 33_554_432,
  maxLargeBytes: 16_777_216,
  largeTimeoutMs: 120_000,
  largePatienceMs: 5_000,
  pollRefusalMs: 5_000,
  maxUnreleased: 1_000,
  maxQueuedDownlinks: 100,
  maxDownlinkBytes: 33_554_432,
  downlinkTimeoutMs: 60_000,
  wantedDownlinkTimeoutMs: 5_000,
  drainTimeoutMs: 30_000,
  maxWaitingConnections: 5_000,
  sweepIntervalMs: 500,
};

export type Listen = { host: string; port: number };
export type TlsListen = Listen & { certFile: string; keyFile: string };

/** Why a connection was not let in. */
export type ConnectionRefusal =
  | 'not-authorized'
  | 'unavailable'
  | 'identifier'
  | 'protocol-version'
  | 'malformed'
  | 'timeout'
  | 'too-many'
  /** A device that connects again and again. */
  | 'reconnects'
  /** Its account has as many connections as it may. */
  | 'connections';

/** Why a connection that had been let in ended. */
export type ConnectionEnding =
  | 'peer'
  | 'keepalive'
  | 'malformed'
  /** Memory for packets that do not end was needed for others. */
  | 'unfinished'
  | 'foreign-topic'
  | 'replaced'
  | 'too-many-connections'
  | 'access-ended'
  | 'not-stored'
  | 'unread'
  | 'shutdown';

/** What is worth counting. Called on the way of every message: to be quick. */
export type Observer = {
  connected(): void;
  refused(reason: ConnectionRefusal): void;
  disconnected(reason: ConnectionEnding): void;
  message(kind: string): void;
  /** `seconds` from the message's arrival to its acknowledgement. */
  acknowledged(seconds: number): void;
};

export type { Log };

export type ConnectorOptions = {
  /** Null: not listened to. Port 0: any free one, told by `addresses`. */
  tcp: Listen | null;
  tls: TlsListen | null;
  limits: ConnectorLimits;
  /** Addresses or networks of proxies in front: their connections begin with the PROXY protocol. */
  trustedProxies?: string[];
  /** The connections that the process may have; absent: no bound. */
  places?: ConnectionPlaces;
  log: Log;
  observe?: Partial<Observer>;
  tuning?: Partial<Tuning>;
  /** A clock that only goes forward, in milliseconds. */
  now: MonotonicClock;
};
