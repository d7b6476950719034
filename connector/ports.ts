import type { Bus } from '../src/bus/bus.ts';
import type {
  AccountThrottle,
  AskedHow,
  Delivery,
  DeviceIdentity,
  Downlink,
  DownTopic,
  DueTopic,
  Uplink,
  UplinkContent,
} from '../src/contract/uplink.ts';
import type { ConnectionPlaces } from '../src/lib/connection-places.ts';
import { codeOf } from '../src/lib/thrown.ts';
import type { Log } from '../src/log/logger.ts';
import type { Clock, MonotonicClock } from '../src/lib/clock-readings.ts';

/** A device's credentials: its uuid and token. `address`: the client's, if known. */
export type DeviceLogin = { username: string; password: string; address?: string };

/** Why a device's login is refused although its token is right, or was not checked. */
export type LoginRefusal =
  'too-many-connects' | 'too-many-connections' | 'foreign-will' | 'no-client-identifier';

/**
 * What each kind of connector needs from the service. The promises may reject with an error whose `code` is
 * `unavailable` (the store is away) or `device-gone` (the device was removed meanwhile).
 */
export type DevicePorts = {
  /**
   * Stores the message and reports to `delivery`. Call it in the order of arrival, without waiting for the previous
   * message: the messages of a device take effect in the order of these calls.
   */
  ingest(device: DeviceIdentity, uplink: Uplink, delivery: Delivery): void;
  /** Messages of the device were withdrawn: those not in a transaction yet fail now. */
  withdraw(device: DeviceIdentity): void;
  /**
   * The device subscribed to these topics: returns what to send it now, from the database. `how` matters to commands,
   * which are handed over in order; absent: `subscribed`.
   */
  subscribed(device: DeviceIdentity, topics: DownTopic[], how?: AskedHow): Promise<Downlink[]>;
  /** What is due for a connected device after a `device` notice. */
  due(device: DeviceIdentity, topic: DueTopic): Promise<Downlink[]>;
  /** The device acknowledged a message with a `pId`, a `keptId` or a `command`, or it was written at QoS 0. */
  delivered(device: DeviceIdentity, message: Downlink): Promise<void>;
  /**
   * The device's first connection here (or waiting poll) began, its last one ended, or it sent something. `seen` comes
   * often. The caller does not wait, so the receiver has to log failures.
   */
  presence(device: DeviceIdentity, change: 'connected' | 'disconnected' | 'seen'): void;
  /** Slows devices of accounts that send more than they may. Absent: nobody waits. */
  throttle?: AccountThrottle | undefined;
  bus: Bus;
  /** Calls back for each account that is disabled: none of its devices may stay. Returns what ends this. */
  onAccountDisabled(listener: (accountId: number) => void): () => void;
  clock: Clock;
};

/** Adds what a connector needs to let devices in. */
export type ConnectorPorts = DevicePorts & {
  /** Null if the credentials are wrong. Costs no query once the device's token version is known. */
  authenticateDevice(credentials: DeviceLogin): Promise<DeviceIdentity | null>;
  /** Reports a refused login, except those that `authenticateDevice` refuses itself. The caller does not wait. */
  loginRefused?(login: {
    uuid: string;
    accountId?: number | undefined;
    reason: LoginRefusal;
    address?: string | undefined;
  }): void;
  /** Whether messages of other accounts wait for a transaction. Called often. */
  othersWait(accountId: number): boolean;
  /** Whether only this account needs the machine, and its devices may exceed their rates. Absent: they never may. */
  mayCatchUp?: ((accountId: number) => boolean) | undefined;
  /** How many measurements a second are read of an account's devices while messages of others wait. */
  measurementsPerSecond(accountId: number): number;
  /** Whether a device that was let in may stay. Called when `access` reports a change. */
  isStillAllowed(device: DeviceIdentity, credentials: DeviceLogin): Promise<boolean>;
  /** How many connections an account's devices may have here. Absent: any number. */
  maxConnectionsOf?: ((accountId: number) => number) | undefined;
};

/** The store, or the way to it, is away for now. */
export const isUnavailableError = (error: unknown) => codeOf(error) === 'unavailable';

/** The device was removed meanwhile. */
export const isGone = (error: unknown) => codeOf(error) === 'device-gone';

/** Limits of one device and of the connector as a whole; config/ has the defaults. */
export type ConnectorLimits = {
  maxPacketBytes: number;
  /** For a PUBLISH to `up/measurements`, if larger; null: the same as for all others. */
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
  /** For one address: connections that are read and not logged in yet, and further ones that wait. */
  connectingPerAddress: number;
  waitingPerAddress: number;
  refusedLoginsPerSecond: number;
  /** How often one device may connect: on average, and at once. */
  reconnectsPerSecond: number;
  reconnectsBurst: number;
  storeTimeoutMs: number;
  /** How many rejections of a message are reported one by one; the rest are counted. */
  rejectionsPerMessage: number;
};

/** The most bytes that a PUBLISH of measurements may have. */
export const mostMeasurementBytes = ({
  maxPacketBytes,
  maxMeasurementPacketBytes,
}: Pick<ConnectorLimits, 'maxPacketBytes' | 'maxMeasurementPacketBytes'>): number =>
  Math.max(maxPacketBytes, maxMeasurementPacketBytes ?? 0);

/** Limits that no user has a reason to change. */
export type Tuning = {
  /** Messages of one connection that wait for their commit. With more, its socket is not read. */
  maxUnackedMessages: number;
  maxUnackedBytes: number;
  /** The same for all connections together, in bytes with `messageOverheadBytes` for each message. */
  maxUnackedTotalBytes: number;
  /** Messages parked because their account sends too much: for one account, and for all. */
  maxParkedBytes: number;
  maxParkedTotalBytes: number;
  /** What a message costs besides its payload, here and in ingest; measured. */
  messageOverheadBytes: number;
  /** Packets that have begun and not ended, of all connections. With more, the earliest one's connection is closed. */
  maxBegunBytes: number;
  /** Measurements that are larger than other packets may be, and have begun and not ended. */
  maxLargeBytes: number;
  /** A large packet that is not whole this long after it had room closes its connection. */
  largeTimeoutMs: number;
  /** How long a request with a large body waits for room. */
  largePatienceMs: number;
  /** How long the refusal of an HTTP poll beyond its rate is delayed. */
  pollRefusalMs: number;
  /** QoS 2 messages of one connection between PUBREC and PUBREL. */
  maxUnreleased: number;
  /** Messages for one device that wait for the acknowledgement of the one before. */
  maxQueuedDownlinks: number;
  /** What is being read for devices, or waits for their acknowledgement, over all devices. */
  maxDownlinkBytes: number;
  /** A message to a device that is not acknowledged for this long closes the connection. */
  downlinkTimeoutMs: number;
  /** The same while devices of others wait for the room that such messages take. */
  wantedDownlinkTimeoutMs: number;
  /** A socket that takes no bytes for this long is closed. */
  drainTimeoutMs: number;
  /**
   * Connections that wait to be admitted; further ones are closed. Each has an open file, even if the client reset it,
   * because nobody reads it and so nobody notices.
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
  /** The device connects too often. */
  | 'reconnects'
  /** Its account has as many connections as it may. */
  | 'connections';

/** Why a connection that had been let in ended. */
export type ConnectionEnding =
  | 'peer'
  | 'keepalive'
  | 'malformed'
  /** Its memory for packets that do not end was needed for others. */
  | 'unfinished'
  | 'foreign-topic'
  | 'replaced'
  | 'too-many-connections'
  | 'access-ended'
  | 'not-stored'
  | 'unread'
  | 'shutdown';

/** Counts events. Called for every message, so it has to be quick. */
export type Observer = {
  connected(): void;
  refused(reason: ConnectionRefusal): void;
  disconnected(reason: ConnectionEnding): void;
  /** How many messages arrived, by what they are. Whoever reads it may clear it. */
  messages: Map<UplinkContent['kind'], number>;
  /** `seconds`: from the message's arrival to its acknowledgement. */
  acknowledged(seconds: number): void;
};

export type { Log };

export type ConnectorOptions = {
  /** Null: not listened to. Port 0: any free port, which `addresses` then states. */
  tcp: Listen | null;
  tls: TlsListen | null;
  limits: ConnectorLimits;
  /** Addresses or networks of proxies in front. Their connections begin with the PROXY protocol. */
  trustedProxies?: string[];
  /** The connections that the process may have. Absent: no bound. */
  places?: ConnectionPlaces;
  log: Log;
  observe?: Partial<Observer>;
  tuning?: Partial<Tuning>;
  /** A monotonic clock, ms. */
  now: MonotonicClock;
};
