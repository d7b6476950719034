import type { Bus } from '../src/bus/bus.ts';
import type {
  AccountThrottle,
  Delivery,
  DeviceIdentity,
  Downlink,
  DueTopic,
  Uplink,
} from '../src/contract/uplink.ts';
import type { DownTopic } from '../src/contract/topic.ts';

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
  holds?: AccountThrottle | undefined;
  bus: Bus;
  /** Told of each account that is shut out: no device of it may stay. Gives what ends that. */
  onAccountDisabled(listener: (accountId: number) => void): () => void;
  clock: () => number;
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
