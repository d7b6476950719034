import type { DeviceIdentity } from '../../src/contract/uplink.ts';
import type { Log, Observer } from '../options.ts';
import type { DevicePorts } from '../ports.ts';
import type { BridgeStatus } from './status.ts';

/** What a bridge is given: it is the broker that lets devices in. */
export type BridgePorts = DevicePorts & {
  /** The device that a topic names; null when there is none. Rejects with `unavailable`. */
  identify(uuid: string): Promise<DeviceIdentity | null>;
};

/** The right to be the one that is connected. */
export type Lease = {
  /** Gives back what is held, so that somebody else gets it, and competes no more for now. */
  rest(): void;
  /** Competes again after a rest. */
  compete(): void;
  /** Whether who decides about it answers. */
  isThere(): boolean;
  /** Gives back what is held once `finish` has settled. */
  release(finish: () => Promise<void>): Promise<void>;
};

/**
 * Competes for a lease. `onLost` comes before anybody else has it; `onWaiting` says, once until it is
 * held, that somebody else does.
 */
export type StartLease = (holder: {
  onHeld: () => void;
  onLost: () => void;
  onWaiting: () => void;
}) => Promise<Lease>;

/** What the holder of a lease is told by its bridge. */
export type LeaseTurn = {
  /** The broker has taken the subscription. */
  onServed: () => void;
  /** Nothing was heard of a broker that serves it for some seconds; said again and again. */
  onSilent: () => void;
};

export type BridgeOptions = {
  broker: BrokerAddress;
  /** Largest packet that the broker is to pass on. */
  maxPacketBytes: number;
  /** Of one message so many rejections are told one by one, the others counted. */
  rejectionsPerMessage: number;
  log: Log;
  /** A clock that only goes forward, in milliseconds. */
  now: () => number;
  status: BridgeStatus;
  observe?: Pick<Observer, 'message' | 'acknowledged'>;
  /** Has `pause` told when nothing more is to be taken in, and when it is again; gives back what ends that. */
  addIntake?: (pause: (isPaused: boolean) => void) => () => void;
};

/** The external broker, and who the bridge is there. */
export type BrokerAddress = {
  url: string;
  /**
   * The broker keeps what was not acknowledged under this name. With a share name it is the same
   * whenever this bridge starts, and no other one's; without, that of all who compete for the lease.
   */
  clientId: string;
  username?: string | undefined;
  password?: string | undefined;
  /** Certificates (PEM) that the broker's is checked against, besides the usual ones. */
  ca?: Buffer | undefined;
  /** All bridges with the same name share the messages; null: whoever is connected gets them all. */
  shareName: string | null;
};
